import subprocess
import sys
import unittest
from unittest import mock
from datetime import datetime, timezone
from pathlib import Path

from purser import (
    AuthenticationError,
    ConnectionFailedError,
    File,
    HttpxConnections,
    LimitError,
    PermissionDeniedError,
    Purser,
    PurserError,
    Retry,
    UnavailableError,
    ValidationError,
)
from purser.connections import Response, StandardConnections
from purser.transport import next_cursor, read_retry_after

from .fake import FakePurser, problem

try:
    import httpx
except ImportError:
    httpx = None

KEY = "svc_test_sk_for-the-tests"
SETTLE = {"payment_id": "pay_1", "settlement_token": "st_1"}
TRANSFER = {
    "from_wallet_id": "mwt_1",
    "from_token": "USDC",
    "to_address": "0x1",
    "to_chain": "base",
    "to_token": "USDC",
    "amount": "1",
}


class Client(unittest.TestCase):
    def setUp(self):
        self.fake = FakePurser()
        self.addCleanup(self.fake.stop)
        self.purser = self.open()
        self.addCleanup(self.purser.close)
        self.pauses = []
        self.purser._transport.pause = self.pauses.append

    def open(self):
        return Purser(KEY, self.fake.url + "/", timeout=5)

    def test_a_post_sends_its_members_by_their_names_with_the_key_and_a_fresh_idempotency_key(self):
        for _ in range(2):
            self.purser.payments.verify(
                protocol="x402", credential="c", price="0.01", wallet_id="byw_1", reports_delivery=False
            )
        first, second = self.fake.calls("/payments/verify")
        expected = {"protocol": "x402", "credential": "c", "price": "0.01", "walletId": "byw_1", "reportsDelivery": False}
        self.assertEqual(first["body"], expected)
        self.assertEqual(first["headers"]["authorization"], f"Bearer {KEY}")
        self.assertNotEqual(first["headers"]["idempotency-key"], second["headers"]["idempotency-key"])

    def test_the_key_goes_over_plain_http_to_this_machine_only_and_elsewhere_if_that_is_allowed(self):
        for address in ("http://pay.example.com", "http://127.0.0.1.example.com", "http://localhost.example.com:80"):
            with self.assertRaisesRegex(ValueError, "in the clear.*allow_insecure"):
                Purser(KEY, address)
            Purser(KEY, address, allow_insecure=True)
        for address in ("http://localhost:4200", "http://127.0.0.1", "http://[::1]:4200", "https://pay.example.com"):
            Purser(KEY, address)

    def test_a_path_without_its_slash_which_would_name_another_host_is_refused(self):
        for path in (".evil.example/account", "@evil.example/account", "account"):
            with self.assertRaisesRegex(ValueError, "Begin it with a slash"):
                self.purser.request("GET", path)
        self.assertEqual(self.fake.seen, [])

    def test_a_filter_by_metadata_is_one_parameter_with_the_name_of_the_member(self):
        self.fake.script("/wallet-infra/transfers", (200, [], {}))
        self.purser.transfers.list(status="failed", metadata={"order id": "4&2"}).page()
        self.assertEqual(self.fake.seen[0]["path"], "/wallet-infra/transfers?status=failed&metadata.order+id=4%262")

    def test_all_attempts_of_a_post_carry_one_idempotency_key(self):
        settled = 200, {"txHash": None, "settledAt": "2026-11-26T12:00:00Z"}, {}
        self.fake.script("/payments/settle", "reset", problem(503, "chain-unavailable"), settled)
        self.purser.payments.settle(**SETTLE)
        keys = {one["headers"]["idempotency-key"] for one in self.fake.calls("/payments/settle")}
        self.assertEqual((len(self.fake.calls("/payments/settle")), len(keys)), (3, 1))
        self.assertEqual(len(self.pauses), 2)
        self.assertTrue(0.375 <= self.pauses[0] <= 0.5 and 0.75 <= self.pauses[1] <= 1)

    def transfer(self, purser=None, **options):
        with self.assertRaises(PurserError) as caught:
            (purser or self.purser).transfers.create(**TRANSFER, **options)
        return caught.exception

    def in_progress(self):
        status, body, _ = problem(409, "idempotency-in-progress")
        return status, body, {"retry-after": "0"}

    def test_a_request_whose_first_attempt_still_runs_is_repeated_for_as_long_as_the_service_may_take(self):
        runs = [self.in_progress() for _ in range(20)]
        self.fake.script("/wallet-infra/transfer", "reset", *runs, (201, {"id": "wtx_1"}, {}))
        self.assertEqual(self.purser.transfers.create(**TRANSFER), {"id": "wtx_1"})
        keys = {one["headers"]["idempotency-key"] for one in self.fake.seen}
        self.assertEqual((len(self.fake.seen), len(keys)), (22, 1))

    def test_a_request_that_runs_for_longer_is_an_error_with_the_key_to_repeat_it_with(self):
        self.fake.script("/wallet-infra/transfer", self.in_progress())
        error = self.transfer()
        self.assertEqual((error.code, error.is_outcome_known), ("idempotency-in-progress", False))
        self.assertEqual(error.idempotency_key, self.fake.seen[0]["headers"]["idempotency-key"])
        self.assertEqual(len(self.fake.seen), 153)
        self.fake.seen.clear()
        self.transfer(self.purser.with_retry(Retry(max_retries=0), 5))
        self.transfer(self.purser.with_retry(Retry(delay_first=0, in_progress_max=0), 5))
        self.assertEqual(len(self.fake.seen), 4)

    def test_an_error_has_the_key_that_was_sent_and_says_whether_the_outcome_is_known(self):
        once = self.purser.with_retry(Retry(max_retries=0), 5)
        cases = [
            ("reset", False),
            (problem(503, "chain-unavailable"), False),
            ((404, b"<html>", {}), False),
            ((200, b"<html>", {}), False),
            (problem(408, "request-timeout"), False),
            (problem(401, "unauthorized"), True),
            (problem(429, "rate-limit-exceeded"), True),
            (problem(422, "validation-error"), True),
        ]
        for doing, is_known in cases:
            with self.subTest(doing=doing):
                self.fake.script("/wallet-infra/transfer", doing)
                error = self.transfer(once, idempotency_key="invoice-7")
                self.assertEqual((error.is_outcome_known, error.idempotency_key), (is_known, "invoice-7"))

    def test_after_a_lost_response_a_refusal_before_the_key_is_looked_at_decides_nothing(self):
        cases = [(401, "unauthorized", False), (403, "policy-denied", False), (422, "transfer-reverted", True)]
        for status, code, is_known in cases:
            with self.subTest(code):
                self.fake.script("/wallet-infra/transfer", problem(503, "chain-unavailable"), problem(status, code))
                self.assertEqual(self.transfer().is_outcome_known, is_known)
        with self.assertRaises(PurserError) as caught:
            self.fake.script("/account", problem(401, "unauthorized"))
            self.purser.account.get()
        self.assertIsNone(caught.exception.idempotency_key)

    def test_a_payment_and_a_transfer_have_more_time_than_the_service_takes(self):
        timeouts = []

        class Recording:
            def send(self, request):
                timeouts.append(request.timeout)
                return Response(200, {}, b"{}")

        with_default, own = [Purser(KEY, "https://a.test", connections=Recording(), timeout=one) for one in (None, 7)]
        with_default.transfers.create(**TRANSFER)
        with_default.request("POST", "/wallet-infra/pay", body={}, idempotency_key="k")
        with_default.account.get()
        own.transfers.create(**TRANSFER)
        own.transfers.create(**TRANSFER, timeout=8)
        self.assertEqual(timeouts, [75, 75, 30, 7, 8])

    def test_retry_after_is_waited_for_and_a_long_one_is_raised(self):
        status, body, _ = problem(429, "rate-limit-exceeded")
        self.fake.script("/account", (status, body, {"retry-after": "7"}), (200, {"id": "acc_1"}, {}))
        self.assertEqual(self.purser.account.get(), {"id": "acc_1"})
        self.assertEqual(self.pauses, [7.0])
        self.fake.script("/account", (status, body, {"retry-after": "61"}))
        with self.assertRaises(PurserError) as caught:
            self.purser.account.get()
        self.assertEqual((caught.exception.retry_after, len(self.pauses)), (61.0, 1))

    def test_a_problem_is_raised_with_what_it_says_and_not_repeated(self):
        faults = [{"path": "/price", "message": "must be decimal"}]
        self.fake.script("/account", problem(422, "validation-error", errors=faults))
        with self.assertRaises(ValidationError) as caught:
            self.purser.account.get()
        error = caught.exception
        self.assertEqual((error.status, error.code, error.title), (422, "validation-error", "validation-error"))
        self.assertEqual((error.detail, error.request_id, error.errors), ("validation-error.", "req_1", faults))
        self.assertEqual(str(error), "validation-error. /price: must be decimal")
        self.assertEqual(len(self.fake.seen), 1)

    def test_each_kind_of_failure_has_its_class(self):
        cases = [
            ("reset", ConnectionFailedError, 3),
            (problem(401, "unauthorized"), AuthenticationError, 1),
            (problem(403, "policy-denied"), PermissionDeniedError, 1),
            (problem(429, "payment-limit-reached"), LimitError, 1),
            (problem(500, "internal-error"), UnavailableError, 3),
            ((302, None, {"location": "http://127.0.0.1:1/"}), UnavailableError, 1),
            ((200, b"<html>", {}), UnavailableError, 1),
        ]
        for doing, kind, attempts in cases:
            with self.subTest(kind=kind.__name__, doing=doing):
                self.fake.seen.clear()
                self.fake.script("/account", doing)
                self.assertRaises(kind, self.purser.account.get)
                self.assertEqual(len(self.fake.seen), attempts)

    def test_a_list_follows_the_cursor_of_its_links_and_no_other_address(self):
        link = {"link": '<https://elsewhere.test/chains?cursor=c2&limit=1>; rel="next"'}
        self.fake.script("/wallet-infra/chains", (200, [{"name": "a"}], link), (200, [{"name": "b"}], {}))
        self.assertEqual([one["name"] for one in self.purser.chains.list(limit=1)], ["a", "b"])
        paths = [one["path"] for one in self.fake.seen]
        self.assertEqual(paths, ["/wallet-infra/chains?limit=1", "/wallet-infra/chains?limit=1&cursor=c2"])

    def test_a_path_parameter_is_quoted_and_dots_are_refused(self):
        self.fake.script("/payments/a%2Fb%3F", (200, {"id": "x"}, {}))
        self.assertEqual(self.purser.payments.get("a/b?"), {"id": "x"})
        self.assertRaises(ValueError, self.purser.payments.get, "..")

    def test_an_id_that_is_no_text_and_a_file_without_its_name_are_refused(self):
        purser = self.purser
        with self.assertRaisesRegex(TypeError, r"^id is None\. Give the id as text"):
            purser.payments.get(None)
        with self.assertRaisesRegex(TypeError, r"^file is bytes\. Give File\(content, name, content_type\)"):
            purser.vaults.files.add("vlt_1", file=b"a;b")
        self.assertEqual(self.fake.seen, [])

    def test_a_file_is_uploaded_and_downloaded_and_a_deletion_answers_nothing(self):
        self.fake.script("/vaults/vlt_1/files", (201, {"id": "vfl_1"}, {}))
        self.purser.vaults.files.add("vlt_1", file=File(b"\x00\xff", 'a".bin'))
        sent = self.fake.seen[0]["body"]
        self.assertIn(b'name="file"; filename="a%22.bin"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\xff\r\n', sent)
        self.fake.script("/vaults/vlt_1/files/vfl_1", (200, b"\x00\xff", {}))
        self.assertEqual(self.purser.vaults.files.get("vlt_1", "vfl_1"), b"\x00\xff")
        self.fake.script("/webhooks/whk_1", (204, None, {}))
        self.assertIsNone(self.purser.webhooks.delete("whk_1"))

    def test_a_stream_is_read_event_by_event(self):
        text = b': hello\n\nid: 1\nevent: delivery\ndata: {"a":\ndata: 1}\n\ndata: {}\n\n'
        self.fake.script("/events/stream", (200, text, {"content-type": "text/event-stream"}))
        first, second = self.purser.events.stream(follow="false")
        self.assertEqual((first.id, first.event, first.json()), ("1", "delivery", {"a": 1}))
        self.assertEqual((second.id, second.event), ("1", "message"))
        self.assertEqual(self.fake.seen[0]["path"], "/events/stream?follow=false")

    def test_wrong_settings_are_refused_at_once(self):
        self.assertRaises(ValueError, Purser, "key with spaces", "https://a.test")
        self.assertRaises(ValueError, Purser, KEY, "a.test")


class Kept(unittest.TestCase):
    """The connections of the standard library."""

    def setUp(self):
        self.fake = FakePurser()
        self.addCleanup(self.fake.stop)
        self.connections = StandardConnections()
        self.purser = Purser(KEY, self.fake.url, timeout=5, retry=Retry(max_retries=0), connections=self.connections)
        self.addCleanup(self.purser.close)
        self.fake.script("/account", (200, {"id": "acc_1"}, {}))

    def peers(self):
        return len({one["peer"] for one in self.fake.seen})

    def test_a_forked_process_shares_no_connection_and_no_lock(self):
        self.purser.account.get()
        self.purser.account.get()
        self.assertEqual(self.peers(), 1)
        lock = self.connections._lock
        with mock.patch("os.getpid", return_value=-1):
            self.purser.account.get()
            self.purser.account.get()
        self.assertEqual(self.peers(), 2)
        self.assertIsNot(self.connections._lock, lock)

    def test_a_request_without_a_key_is_sent_once(self):
        self.purser.account.get()
        self.fake.script("/wallet-infra/byo-wallets/byw_1", "reset")
        for call in (lambda: self.purser.wallets.byo.delete("byw_1"), lambda: self.purser.wallets.byo.update("byw_1")):
            self.fake.seen.clear()
            self.assertRaises(ConnectionFailedError, call)
            self.assertEqual(len(self.fake.seen), 1)

    def test_a_request_with_a_key_is_sent_again_and_a_refusal_of_that_does_not_decide_about_the_first(self):
        self.purser.account.get()
        self.fake.script("/wallet-infra/transfer", "reset", problem(401, "unauthorized"))
        with self.assertRaises(AuthenticationError) as caught:
            self.purser.transfers.create(**TRANSFER)
        self.assertFalse(caught.exception.is_outcome_known)
        self.assertEqual(len({one["headers"].get("idempotency-key") for one in self.fake.seen[1:]}), 1)


@unittest.skipIf(httpx is None, "httpx is not installed")
class HttpxClient(Client):
    def open(self):
        return Purser(KEY, self.fake.url, timeout=5, connections=HttpxConnections(httpx.Client()))


class Parts(unittest.TestCase):
    def test_links_are_read_as_rfc_8288_writes_them(self):
        self.assertEqual(next_cursor('</a?cursor=1>; rel="prev", </a?cursor=2>; rel="last next"'), "2")
        self.assertIsNone(next_cursor('</a?cursor=1>; rel="nextish"'))
        self.assertIsNone(next_cursor(None))

    def test_retry_after_is_read_as_seconds_or_as_a_date(self):
        now = datetime(2026, 11, 26, 12, 0, 0, tzinfo=timezone.utc)
        self.assertEqual(read_retry_after("3", now), 3.0)
        self.assertEqual(read_retry_after("Thu, 26 Nov 2026 12:00:05 GMT", now), 5.0)
        self.assertIsNone(read_retry_after("soon", now))

    def test_the_generated_files_are_current(self):
        script = Path(__file__).resolve().parents[1] / "generate.py"
        done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
