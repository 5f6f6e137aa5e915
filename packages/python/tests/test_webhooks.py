import json
import unittest
from email.message import Message
from pathlib import Path

from purser.webhooks import WebhookVerificationError, unwrap, verify_service_signature, verify_standard_signature

VECTORS = Path(__file__).resolve().parents[2] / "protocol" / "src" / "vectors" / "webhook-signatures.json"


def body_of(vector):
    return vector["body"].encode() if "body" in vector else bytes.fromhex(vector["bodyHex"])


class Vectors(unittest.TestCase):
    """The vectors by which the service itself is tested."""

    def setUp(self):
        self.vectors = json.loads(VECTORS.read_text(encoding="utf-8"))

    def test_what_the_service_signs_is_accepted_in_both_forms(self):
        for vector in self.vectors["sign"]:
            with self.subTest(vector["name"]):
                headers, now = vector["headers"], vector["timestamp"]
                for secret in vector["secrets"]:
                    stamp, signature = headers["x-service-timestamp"], headers["x-service-signature"]
                    judged = verify_service_signature(body_of(vector), stamp, signature, [secret], now=now)
                    self.assertIsNone(judged)
                    parts = (headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"])
                    self.assertIsNone(verify_standard_signature(body_of(vector), parts, [secret], now=now))

    def test_each_verdict_is_that_of_the_vector(self):
        judged = 0
        for vector in self.vectors["verify"]:
            if vector["form"] == "key":
                continue
            with self.subTest(vector["name"]):
                options = {"now": vector["nowSeconds"], "tolerance_seconds": vector.get("toleranceSeconds", 300)}
                found = self.judge(vector, options)
                self.assertEqual(found or "accepted", vector["verdict"])
                judged += 1
        self.assertGreater(judged, 40)

    def judge(self, vector, options):
        body, stamp, signature = body_of(vector), vector["timestamp"], vector["signature"]
        if vector["form"] == "service":
            return verify_service_signature(body, stamp, signature, vector["secrets"], **options)
        return verify_standard_signature(body, (vector["id"], stamp, signature), vector["secrets"], **options)

    def test_a_secret_is_read_only_in_its_one_form(self):
        for vector in self.vectors["secrets"]:
            with self.subTest(vector["text"]):
                call = lambda text=vector["text"]: verify_service_signature(b"", "1", "x", [text], now=1)  # noqa: E731
                if vector["bytesHex"] is None:
                    self.assertRaises(ValueError, call)
                else:
                    self.assertEqual(call(), "signature-mismatch")


class Deliveries(unittest.TestCase):
    def setUp(self):
        vectors = json.loads(VECTORS.read_text(encoding="utf-8"))["sign"]
        self.vector = next(one for one in vectors if "eventId" in one.get("body", ""))
        self.options = {"now": self.vector["timestamp"]}

    def unwrap(self, headers, body=None, **changes):
        given = self.vector["body"] if body is None else body
        return unwrap(given, headers, self.vector["secrets"], **{**self.options, **changes})

    def reason(self, *arguments, **changes):
        with self.assertRaises(WebhookVerificationError) as caught:
            self.unwrap(*arguments, **changes)
        return caught.exception.reason

    def test_a_delivery_is_unwrapped_by_either_form_with_headers_of_any_case(self):
        headers = self.vector["headers"]
        service = {name.title(): value for name, value in headers.items() if name.startswith("x-")}
        sent = json.loads(self.vector["body"])
        message = Message()
        for name, value in headers.items():
            message[name] = value
        for received in (headers, service, list(headers.items()), message):
            event = self.unwrap(received)
            self.assertEqual((event.event_id, event.type, event.payload), tuple(sent.values()))

    def test_what_is_not_a_delivery_is_refused_with_the_reason(self):
        headers = dict(self.vector["headers"])
        self.assertEqual(self.reason({}), "header-missing")
        self.assertEqual(self.reason([*headers.items(), ("Webhook-Id", "evt_2")]), "header-repeated")
        self.assertEqual(self.reason(headers, self.vector["body"] + " "), "signature-mismatch")
        self.assertEqual(self.reason(headers, now=self.vector["timestamp"] + 301), "timestamp-too-old")
        self.assertEqual(self.reason(headers, now=self.vector["timestamp"] - 301), "timestamp-too-new")

    def test_a_parsed_body_is_a_fault_of_the_program(self):
        self.assertRaises(TypeError, unwrap, {"eventId": "evt_1"}, {}, self.vector["secrets"])
