import asyncio
import base64
import json
import subprocess
import sys
import threading
import time
import unittest
from io import BytesIO
from pathlib import Path
from unittest import mock

from purser import Purser, asgi, wsgi
from purser.selling import Route, Routes, find_credential, sold_headers, split_challenges

from .fake import TX, FakePurser, challenge, problem, verification

WALLET = "byw_01h455vb4pex5vsknk084sn02q"
PAYMENT = base64.b64encode(json.dumps({"accepted": {"network": "eip155:84532"}}).encode()).decode()
MPP = "Payment " + base64.urlsafe_b64encode(
    json.dumps({"challenge": {"id": "a", "method": "evm"}, "payload": {"type": "authorization"}}).encode()
).decode().rstrip("=")


class Exports(unittest.TestCase):
    def test_a_type_checker_may_import_each_name_of_the_guide_from_either_module(self):
        for module, seller in ((asgi, "AsgiSeller"), (wsgi, "WsgiSeller")):
            self.assertLessEqual({seller, "Fault", "Route", "sell"}, set(module.__all__))
            for name in module.__all__:
                self.assertTrue(hasattr(module, name), name)


class Headers(unittest.TestCase):
    def test_the_payment_in_a_header_is_found(self):
        for value, found in (
            ("Payment abc", "Payment abc"),
            ("Bearer key, payment abc", "payment abc"),
            ("Payment stub_payment_accepted", "stub_payment_accepted"),
            ('Digest a="x, Payment abc", Payment def', "Payment def"),
            ('Digest a="x\\", Payment abc", Payment def', "Payment def"),
            ('Digest a="x, Payment abc', "none"),
            ("Payment abc, Payment abc", "ambiguous"),
            ("Payment", "none"),
        ):
            credential = find_credential({"authorization": value})
            self.assertEqual(found, getattr(credential, "value", credential))

    def test_a_header_with_a_quotation_that_does_not_end_is_read_once_however_many_quotation_marks_it_has(self):
        began = time.monotonic()
        self.assertEqual("none", find_credential({"authorization": '\\"' * 50_000 + "\\"}))
        # Reading it once from each of its quotation marks takes more than half a minute.
        self.assertLess(time.monotonic() - began, 5)


class Releases(unittest.TestCase):
    def test_a_process_ends_while_purser_does_not_answer_a_release_and_one_at_its_end_does_not_raise(self):
        program = (
            "import atexit, threading\n"
            "from purser import Purser\n"
            "from purser.selling import Seller\n"
            "class Silent:\n"
            "    def send(self, request):\n"
            "        print('sent', flush=True)\n"
            "        started.release()\n"
            "        threading.Event().wait()\n"
            "started = threading.Semaphore(0)\n"
            f"seller, late = [Seller(Purser('svc_test_sk_1', 'https://a.test', connections=Silent()), '{WALLET}') for _ in '12']\n"
            "def at_end():\n"
            "    late.release('pay_2', 'st_secret')\n"
            "    print('ended', flush=True)\n"
            "atexit.register(at_end)\n"
            "for one in range(5): seller.release(f'pay_{one}', 'st_secret')\n"
            "started.acquire()\n"
        )
        source = Path(__file__).resolve().parent.parent / "src"
        done = subprocess.run([sys.executable, "-c", program], cwd=source, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("ended", done.stdout)


class Got:
    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.pairs = [(name.lower(), value) for name, value in headers]
        self.headers = dict(self.pairs)

    def json(self):
        return json.loads(self.body)


class Selling:
    """The guarantees of both interfaces. Each shop sells /paid and serves /free."""

    def setUp(self):
        self.fake = FakePurser()
        self.addCleanup(self.fake.stop)
        self.runs, self.faults = [], []
        self.response = (200, [("Content-Type", "text/plain"), ("Cache-Control", "public, max-age=5")], b"rain")
        self.error = None
        self.shop = self.open(Route("0.01", description="Weather"))

    def options(self):
        purser = Purser("svc_test_sk_1", self.fake.url)
        self.addCleanup(purser.close)
        return purser, WALLET

    def without_pauses(self, shop):
        shop.seller.pause = lambda _seconds: None
        shop.seller.client._transport.pause = lambda _seconds: None
        return shop

    mounted_at = ""

    def buy(self, path="/paid", method="GET", mounted_at="", **headers):
        self.mounted_at = mounted_at
        return self.request(method, path, {"host": "shop.test", **{k.replace("_", "-"): v for k, v in headers.items()}})

    def assertNothingServed(self, got, status):
        self.assertEqual((got.status, self.runs), (status, []))
        self.assertNotIn(b"rain", got.body)

    def test_a_request_without_payment_gets_the_challenge_of_both_protocols(self):
        got = self.buy("/paid?city=Lima")
        self.assertNothingServed(got, 402)
        self.assertEqual(got.headers["payment-required"], challenge()["x402"])
        offers = [value for name, value in got.pairs if name == "www-authenticate"]
        self.assertEqual(len(offers), 2)
        self.assertEqual(got.json()["accepts"], [])
        self.assertEqual(got.json()["type"], "https://paymentauth.org/problems/payment-required")
        (call,) = self.fake.calls("/payments/challenge")
        self.assertNotIn("method", call["body"], "a challenge promises its price to no other request")
        self.assertEqual(call["body"]["resource"], "http://shop.test/paid?city=Lima")
        self.assertEqual((call["body"]["price"], call["body"]["walletId"]), ("0.01", WALLET))

    def test_a_paid_request_is_served_once_with_a_receipt_after_settlement(self):
        got = self.buy(payment_signature=PAYMENT)
        self.assertEqual((got.status, got.body, len(self.runs)), (200, b"rain", 1))
        receipt = json.loads(base64.b64decode(got.headers["payment-response"]))
        self.assertEqual((receipt["success"], receipt["transaction"]), (True, TX))
        self.assertEqual(receipt["network"], "eip155:84532")
        self.assertEqual(got.headers["cache-control"], "max-age=5, private")
        self.assertEqual(self.runs[0]["paymentId"], "pay_1")
        self.assertNotIn("settlementToken", self.runs[0])
        (settle,) = self.fake.calls("/payments/settle")
        self.assertEqual(settle["body"], {"paymentId": "pay_1", "settlementToken": "st_secret"})

    def test_version_1_and_mpp_get_their_own_receipts(self):
        self.assertIn("x-payment-response", self.buy(x_payment=PAYMENT).headers)
        got = self.buy(authorization=f"Bearer abc, {MPP}")
        receipt = got.headers["payment-receipt"]
        read = json.loads(base64.urlsafe_b64decode(receipt + "=" * (-len(receipt) % 4)))
        self.assertEqual((read["status"], read["method"], read["reference"]), ("success", "evm", TX))
        self.assertEqual((read["challengeId"], read["chainId"]), ("a", 84532))
        self.assertEqual(self.fake.calls("/payments/verify")[1]["body"]["credential"], MPP)

    def test_two_payments_are_refused(self):
        self.assertNothingServed(self.buy(payment_signature=PAYMENT, authorization=MPP), 400)
        self.assertNothingServed(self.buy(payment_signature=f"{PAYMENT},{PAYMENT}"), 400)
        self.assertEqual(self.fake.seen, [])

    def test_a_refused_payment_gets_a_new_challenge_with_the_reason(self):
        self.fake.script("/payments/verify", problem(402, "payment-verification-failed", reason="invalid_signature"))
        got = self.buy(payment_signature=PAYMENT)
        self.assertNothingServed(got, 402)
        self.assertEqual(got.json()["error"], "invalid_signature")
        self.assertEqual(json.loads(base64.b64decode(got.headers["payment-required"]))["error"], "invalid_signature")

    def test_a_used_payment_is_a_conflict(self):
        self.fake.script("/payments/verify", problem(409, "duplicate-payment"))
        got = self.buy(payment_signature=PAYMENT)
        self.assertNothingServed(got, 409)
        self.assertEqual(got.json()["code"], "duplicate-payment")

    def test_nothing_is_served_while_purser_gives_no_clear_response(self):
        silences = {
            "reset": "reset",
            "500": problem(500, "internal-error"),
            "a used-up plan": problem(429, "payment-limit-reached"),
            "html": (200, b"<html>", {}),
            "valid: false": (200, verification(valid=False), {}),
        }
        for name, doing in silences.items():
            with self.subTest(name):
                self.fake.script("/payments/verify", doing)
                got = self.buy(payment_signature=PAYMENT)
                self.assertNothingServed(got, 503)
                self.assertEqual(got.headers["retry-after"], "5")
        self.fake.script("/payments/challenge", "reset")
        self.assertNothingServed(self.buy(), 503)
        self.assertEqual({fault.stage for fault in self.faults}, {"verify", "challenge"})

    def test_a_wrong_configuration_is_an_error_of_the_server(self):
        self.fake.script("/payments/challenge", problem(422, "wallet-not-found"))
        self.assertNothingServed(self.buy(), 500)
        self.fake.script("/payments/verify", problem(401, "unauthorized"))
        self.assertNothingServed(self.buy(payment_signature=PAYMENT), 500)

    def test_a_failed_settlement_serves_and_charges_nothing(self):
        self.fake.script("/payments/settle", problem(409, "settlement-failed", reason="insufficient_funds"))
        got = self.buy(payment_signature=PAYMENT)
        self.assertEqual((got.status, got.json()), (402, {"error": "insufficient_funds"}))
        failure = json.loads(base64.b64decode(got.headers["payment-response"]))
        self.assertEqual((failure["success"], failure["errorReason"]), (False, "insufficient_funds"))

    def test_an_unknown_settlement_withholds_the_response_and_says_so(self):
        self.fake.script("/payments/settle", problem(503, "chain-unavailable"))
        got = self.buy(payment_signature=PAYMENT)
        self.assertEqual((got.status, got.json()["code"]), (503, "settlement-unavailable"))
        self.assertNotIn(b"rain", got.body)
        (fault,) = self.faults
        self.fake.scripts.clear()
        self.assertEqual(fault.settle_again()["txHash"], TX)

    def test_a_pending_settlement_is_released_in_a_block_or_awaited(self):
        pending = 202, {"status": "settling", "txHash": TX}, {}
        self.fake.script("/payments/settle", (202, {"status": "settling", "txHash": None}, {}), pending)
        got = self.buy(payment_signature=PAYMENT)
        receipt = json.loads(base64.b64decode(got.headers["payment-response"]))
        self.assertEqual((got.status, receipt["extra"]), (200, {"settlement": "pending"}))
        self.shop = self.open(Route("0.01", on_pending="hold", hold_seconds=0))
        self.fake.script("/payments/settle", pending)
        self.assertEqual(self.buy(payment_signature=PAYMENT).status, 503)

    def test_what_is_not_a_success_is_not_charged(self):
        for status in (304, 302, 404, 500):
            self.response = (status, [("X-Own", "1")], b"")
            got = self.buy(payment_signature=PAYMENT)
            self.assertEqual((got.status, got.headers["x-own"]), (status, "1"))
            self.assertNotIn("payment-response", got.headers)
        self.assertEqual(self.fake.calls("/payments/settle"), [])
        self.assertEqual(self.released(), [{"settlementToken": "st_secret"}] * 4)

    def test_a_handler_sees_no_condition_of_a_paid_request_since_a_304_shows_a_digest_of_the_goods(self):
        conditions = {"If_None_Match": "*", "if_modified_since": "x", "if_match": "*", "if_unmodified_since": "x"}
        self.assertEqual(self.buy(payment_signature=PAYMENT, accept="a", **conditions).status, 200)
        self.assertEqual([name for name in self.seen if name.startswith("if-")], [])
        self.assertIn("accept", self.seen)

    def test_a_method_that_is_not_in_capitals_is_refused(self):
        self.shop = self.open(Route("0.01", free_methods=["HEAD"]))
        for method in ("head", "Get"):
            self.assertNothingServed(self.buy(method=method), 400)
            self.assertNothingServed(self.buy(method=method, payment_signature=PAYMENT), 400)

    def released(self):
        """The bodies of all releases, once the shop has sent them."""
        self.shop.seller._releases.join()
        return [call["body"] for call in self.fake.calls("/payments/pay_1/release")]

    def test_a_release_that_is_refused_is_no_fault_and_its_failure_is_one(self):
        self.response = (500, [], b"")
        for status, code in ((409, "payment-in-settlement"), (503, "database-unavailable")):
            self.assertEqual(self.faults, [])
            self.fake.script("/payments/pay_1/release", problem(status, code))
            self.buy(payment_signature=PAYMENT)
            self.released()
        self.assertEqual([(one.stage, one.error.code) for one in self.faults], [("release", "database-unavailable")])

    def test_a_forked_process_releases_with_threads_of_its_own(self):
        self.response = (500, [], b"")
        self.buy(payment_signature=PAYMENT)
        self.released()
        with mock.patch("os.getpid", return_value=-1):
            self.buy(payment_signature=PAYMENT)
        self.assertEqual(len(self.released()), 2)

    def test_a_handler_that_raises_is_not_charged(self):
        self.error = RuntimeError("broken")
        self.assertRaises(RuntimeError, self.buy, payment_signature=PAYMENT)
        self.assertEqual(self.fake.calls("/payments/settle"), [])
        self.assertEqual(len(self.released()), 1)

    def test_a_response_with_a_malformed_status_is_not_charged_and_its_payment_can_be_used_again(self):
        good, self.response = self.response, ("OK", [], b"rain")
        self.assertRaises((ValueError, TypeError), self.buy, payment_signature=PAYMENT)
        self.assertEqual(len(self.released()), 1)
        self.response = good
        self.assertEqual(self.buy(payment_signature=PAYMENT).status, 200)

    def test_a_response_over_the_limit_is_neither_sent_nor_charged(self):
        self.shop = self.open(Route("0.01", body_bytes_max=3))
        got = self.buy(payment_signature=PAYMENT)
        self.assertEqual((got.status, got.json()["code"]), (500, "response-too-large"))
        self.assertEqual(self.fake.calls("/payments/settle"), [])
        self.assertEqual(len(self.released()), 1)

    def test_options_never_runs_the_handler_and_head_costs_the_price_without_a_body(self):
        self.assertNothingServed(self.buy(method="OPTIONS", payment_signature=PAYMENT), 204)
        got = self.buy(method="HEAD")
        self.assertNothingServed(got, 402)
        self.assertEqual(got.body, b"")
        self.assertIn("payment-required", got.headers)
        self.assertEqual(self.buy(method="HEAD", payment_signature=PAYMENT).status, 200)

    def test_other_spellings_of_a_sold_path_are_sold_and_other_paths_are_free(self):
        for path in ("/paid/", "//paid", "/./paid", "/free/../paid", "/PAID", "/paid\n", "/paid ", "/paid/%2e", "/%70aid"):
            with self.subTest(path):
                self.assertNothingServed(self.buy(path), 402)
        self.assertEqual(self.buy("/free").body, b"rain")

    def test_no_spelling_leads_out_of_a_sold_part_for_an_application_that_keeps_dots_and_escapes(self):
        self.shop = self.open(Route("0.01"), sold="/ask/*")
        for path in ("/ask/..", "/ask/%2e%2e", "/ask/a/../../free", "/ask/%252e%252e", "/ask/%2e%2e/%2e%2e/free", "/ask/..%2ffree"):
            with self.subTest(path):
                self.assertNothingServed(self.buy(path), 402)
        self.assertEqual(self.buy("/free").body, b"rain")

    def test_a_long_path_is_refused_before_it_is_interpreted(self):
        routes = Routes({"/dear/*": "5", "/cheap": "1"})
        self.assertEqual(routes.find("/dear/" + "a" * 2_042).price, "5")
        for path in ("/dear/" + "a" * 2_043, "/a" * 32_000, "/%61" * 32_000):
            with mock.patch("purser.selling._readings") as readings:
                self.assertEqual(routes.find(path).status, 400)
                readings.assert_not_called()

    def test_no_cache_keeps_a_sold_response_by_a_header_for_caches_of_its_kind(self):
        names = ("CDN-Cache-Control", "Vercel-CDN-Cache-Control", "surrogate-control", "Edge-Control", "X-Accel-Expires")
        own = [(name, "max-age=600") for name in names] + [("Surrogate-Key", "a"), ("Cache-Control", "max-age=60")]
        sold = [(name, value) for name, value in sold_headers(own, []) if "Expose" not in name]
        self.assertEqual(sold, [("Surrogate-Key", "a"), ("Cache-Control", "max-age=60, private")])

    def test_a_path_with_two_prices_in_two_readings_is_refused(self):
        routes = Routes({"/cheap/*": "0.01", "/dear/*": "5"})
        for path in ("/cheap/../dear/a", "/cheap/%2e%2e/dear/a"):
            self.assertEqual(routes.find(path).status, 400)
        self.assertEqual(routes.find("/cheap/./a").price, "0.01")

    def test_a_step_back_is_refused_if_several_routes_are_sold(self):
        routes = Routes({"/static/*": "0.01", "/static/paid.pdf": "5"})
        self.assertEqual(routes.find("/static/../public/paid.pdf").status, 400)
        self.assertEqual(routes.find("/static/paid.pdf").price, "5")

    def test_the_path_below_the_mount_is_matched_too_and_two_routes_are_refused(self):
        self.assertEqual(Routes({"/*": "0.01", "/dear": "5"}).find("/api/dear", "/dear").price, "5")
        self.assertEqual(Routes({"/*": "0.01", "/dear": "5"}).find("/api/other", "/other").price, "0.01")
        self.assertEqual(Routes({"/cheap/*": "0.01", "/dear": "5"}).find("/cheap/dear", "/dear").status, 400)
        shared = Route("5")
        routes = Routes({"/*": shared, "/dear": shared, "/cheap/*": "0.01"})
        self.assertEqual(routes.find("/cheap/dear", "/dear").status, 400)

    def test_a_route_of_the_whole_path_does_not_replace_what_the_rest_below_the_mount_costs(self):
        self.assertEqual(Routes({"/*": "5", "/cheap/*": "0.01"}).find("/cheap/report", "/report").status, 400)

    def test_the_price_of_a_part_is_found_below_it_at_any_depth(self):
        routes = Routes({"/*": "1", "/a/*": "2", "/a/b/c/*": "3", "/a/b": "4"})
        prices = [routes.find(path).price for path in ("/", "/b/a", "/a", "/a/b/x/c", "/a/b/c", "/a/b/c/d/e/", "/a/b")]
        self.assertEqual(prices, ["1", "1", "2", "2", "3", "3", "4"])

    def test_a_route_is_sold_where_the_application_is_mounted_below_another_path(self):
        for path in ("/paid", "/paid/"):
            self.assertNothingServed(self.buy(path, mounted_at="/api"), 402)
        self.shop = self.open(Route("0.01"), sold="/api/paid")
        self.assertNothingServed(self.buy("/paid", mounted_at="/api"), 402)
        self.assertEqual(self.buy("/free", mounted_at="/api").body, b"rain")

    def test_a_route_with_other_letters_is_sold(self):
        self.shop = self.open(Route("0.01"), sold="/r\u00e9sum\u00e9")
        self.assertNothingServed(self.buy("/r\u00e9sum\u00e9"), 402)

    def test_a_step_back_after_an_empty_part_or_a_dot_leads_to_the_sold_path_as_it_does_in_static_files(self):
        self.shop = self.open(Route("0.01"), sold="/static/paid.pdf")
        for step in ("a//..", "a/./..", "a/%2F..", "a/.//./..", "a/%2e/..", "a//%2e%2e", "a/b//..//.."):
            with self.subTest(step):
                self.assertNothingServed(self.buy(f"/static/{step}/paid.pdf"), 402)

    def test_a_step_back_to_where_nothing_is_sold_is_refused_since_it_may_lead_into_a_folder_of_files(self):
        self.shop = self.open(Route("0.01"), sold="/static/paid.pdf")
        for path in ("/static/../public/paid.pdf", "/static/%2e%2e/public/paid.pdf", "/..%2fpublic/paid.pdf"):
            with self.subTest(path):
                self.assertNothingServed(self.buy(path), 400)
        self.assertEqual(self.buy("/static/a..b/...").body, b"rain")

    def test_letters_that_expressions_without_case_take_for_others_are_the_same(self):
        self.shop = self.open(Route("0.01"), sold="/risk")
        for path in ("/r\u0131sk", "/R\u0130SK", "/ri\u0307sk", "/ri\u017f\u212a"):
            with self.subTest(path):
                self.assertNothingServed(self.buy(path), 402)

    def test_a_malformed_host_is_refused(self):
        for host in ("shop.test/evil?", "shop.test/evil", "a@b", ""):
            expected = 402 if host == "" and isinstance(self, Wsgi) else 400
            self.assertNothingServed(self.request("GET", "/paid", {"host": host}), expected)

    def test_the_public_address_replaces_the_host_of_the_request(self):
        self.shop = self.open(Route("0.01"), public_url="https://api.test/v1/")
        self.buy("/paid?a=1")
        (call,) = self.fake.calls("/payments/challenge")
        self.assertEqual(call["body"]["resource"], "https://api.test/v1/paid?a=1")

    def test_copies_of_a_payment_run_the_handler_once_at_a_time(self):
        entered, leave, first = threading.Event(), threading.Event(), []
        self.wait = lambda: (entered.set(), leave.wait(10))
        thread = threading.Thread(target=lambda: first.append(self.buy(payment_signature=PAYMENT)))
        thread.start()
        entered.wait(10)
        second = self.buy(payment_signature=PAYMENT)
        leave.set()
        thread.join()
        self.assertEqual((second.status, second.json()["code"]), (409, "delivery-in-progress"))
        self.assertEqual((first[0].status, len(self.runs)), (200, 1))

    wait = staticmethod(lambda: None)

    def run_handler(self, payment):
        self.runs.append(payment)
        self.wait()
        if self.error is not None:
            raise self.error
        return self.response


class Wsgi(Selling, unittest.TestCase):
    def open(self, route, sold="/paid", **options):
        shop = wsgi.WsgiSeller(self.app, *self.options(), {sold: route}, on_fault=self.faults.append, **options)
        return self.without_pauses(shop)

    def app(self, environ, start_response):
        self.seen = [name[5:].replace("_", "-").lower() for name in environ if name.startswith("HTTP_")]
        status, headers, body = self.run_handler(environ.get("purser.payment"))
        start_response(f"{status} Some", headers)
        return [body[:2], body[2:]]

    def test_a_path_that_is_not_utf_8_is_refused(self):
        for name in ("PATH_INFO", "SCRIPT_NAME"):
            for path in ("/pa\xffid", "/r\xe9sum\xe9", "/pa\xed\xa0\x80id", "/pa\udcffid", "/\u20ac"):
                with self.subTest((name, path)):
                    self.raw = {"PATH_INFO": "/free", name: path}
                    self.assertNothingServed(self.buy(), 400)

    def test_a_header_that_names_another_mount_changes_neither_that_a_path_is_sold_nor_its_price(self):
        # Gunicorn takes SCRIPT_NAME from a header and off the path, and a dispatcher mounts the application at /api.
        self.shop = self.open(Route("0.01"), sold="/api/paid")
        for mount in ("/api/api", "/x/api", "/x//y/api"):
            with self.subTest(mount):
                self.assertNothingServed(self.buy("/paid", mounted_at=mount), 402)
        self.assertNothingServed(self.buy("/paid", mounted_at="/x" * 100), 400)
        self.assertEqual(self.buy("/free", mounted_at="/api/api").body, b"rain")

    raw = {}

    def request(self, method, path, headers):
        started = []
        path, _, query = path.partition("?")
        environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": self.mounted_at,
            "PATH_INFO": path.encode().decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "wsgi.input": BytesIO(),
            **self.raw,
            **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
        }
        body = b"".join(self.shop(environ, lambda status, own, exc=None: started.append((status, own))))
        ((status, own),) = started
        return Got(int(status[:3]), own, body)


class Asgi(Selling, unittest.TestCase):
    def open(self, route, sold="/paid", **options):
        shop = asgi.AsgiSeller(self.app, *self.options(), {sold: route}, on_fault=self.faults.append, **options)
        return self.without_pauses(shop)

    async def app(self, scope, _receive, send):
        self.seen = [name.decode().lower() for name, _ in scope.get("headers", [])]
        status, headers, body = self.run_handler(scope.get("purser.payment"))
        raw = [(name.encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body[:2], "more_body": True})
        await send({"type": "http.response.body", "body": body[2:]})

    def test_a_path_that_is_not_utf_8_is_refused(self):
        for raw in ({"path": "/pa\ufffdid", "raw_path": b"/pa%FFid"}, {"path": "/pa\udcffid", "raw_path": None}):
            with self.subTest(raw):
                self.raw = raw
                self.assertNothingServed(self.buy(), 400)
        # A server may leave the query in the raw path, and a query may have any encoding.
        self.raw = {"path": "/pa\ufffdid", "raw_path": b"/pa%EF%BF%BDid?city=%FF"}
        self.assertEqual(self.buy().body, b"rain")

    def test_a_target_with_its_origin_is_refused_since_quart_takes_its_path(self):
        self.raw = {"path": "http://shop.test/paid", "raw_path": b"http://shop.test/paid"}
        self.assertNothingServed(self.buy(), 400)

    def test_what_follows_the_mount_is_matched_wherever_the_mount_is_in_the_path_as_in_quart(self):
        for path in ("/x/api/paid", "/x/apipaid", "/apipaid"):
            with self.subTest(path):
                self.raw = {"path": path, "root_path": "/api"}
                self.assertNothingServed(self.buy(), 402)
        # Starlette takes the whole path, so it could be either route.
        prices = {"/*": Route("5"), "/paid": Route("0.01")}
        self.shop = asgi.AsgiSeller(self.app, *self.options(), prices)
        self.raw = {"path": "/x/api/paid", "root_path": "/api"}
        self.assertNothingServed(self.buy(), 400)

    raw = {}

    def scope(self, kind, path, headers):
        path, _, query = path.partition("?")
        own = [(name.encode(), value.encode()) for name, value in headers.items()]
        path = self.mounted_at + path
        mounted = {"root_path": self.mounted_at} if self.mounted_at else {}
        given = {"path": path, "query_string": query.encode(), "headers": own, "scheme": "http"}
        return {**mounted, "type": kind, **given, **self.raw}

    def request(self, method, path, headers):
        sent = []

        async def send(message):
            sent.append(message)

        asyncio.run(self.shop({**self.scope("http", path, headers), "method": method}, None, send))
        start, *bodies = sent
        self.assertEqual(start["type"], "http.response.start")
        pairs = [(name.decode(), value.decode()) for name, value in start["headers"]]
        return Got(start["status"], pairs, b"".join(one.get("body", b"") for one in bodies))

    def test_while_purser_is_silent_the_threads_of_asyncio_are_free_and_few_requests_wait(self):
        silence = threading.Event()
        by_contract = self.fake.by_contract

        def silent(path, body):
            silence.wait(60)
            return by_contract(path, body)

        self.fake.by_contract = silent
        statuses = []

        async def send(message):
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        async def visit():
            scope = {**self.scope("http", "/paid", {"host": "shop.test"}), "method": "GET"}
            requests = [asyncio.ensure_future(self.shop(scope, None, send)) for _ in range(90)]
            try:
                # All threads of asyncio, and the 32 that it has at most, run this.
                own = [asyncio.ensure_future(asyncio.to_thread(int, "1")) for _ in range(40)]
                _, late = await asyncio.wait(own, timeout=10)
                self.assertEqual(late, set())
                self.assertEqual(statuses, [503] * 10)
            finally:
                silence.set()
                await asyncio.wait(requests)

        asyncio.run(visit())
        self.assertEqual(sorted(statuses), [402] * 80 + [503] * 10)

    def intercept(self, ending, before):
        """Calls ``before`` ahead of each response of the service to a path with this end."""
        by_contract = self.fake.by_contract
        self.fake.by_contract = lambda path, body: (path.endswith(ending) and before(), by_contract(path, body))[1]

    def visit(self, payment):
        """Starts a request in the running loop; nobody reads its response."""

        async def send(_message):
            pass

        headers = {"host": "shop.test", "payment-signature": payment}
        return asyncio.ensure_future(self.shop({**self.scope("http", "/paid", headers), "method": "GET"}, None, send))

    def test_a_request_that_is_canceled_while_its_payment_is_verified_releases_the_payment(self):
        verifying, leave, released = threading.Event(), threading.Event(), threading.Event()
        self.intercept("/verify", lambda: (verifying.set(), leave.wait(10)))
        self.intercept("/release", released.set)

        async def cancel():
            request = self.visit(PAYMENT)
            await asyncio.to_thread(verifying.wait, 10)
            request.cancel()
            await asyncio.wait([request])
            self.assertTrue(request.cancelled())

        asyncio.run(cancel())
        leave.set()
        self.assertTrue(released.wait(10))
        self.assertEqual((self.buy(payment_signature=PAYMENT).status, len(self.runs)), (200, 1))

    def test_a_request_that_is_canceled_while_its_settlement_waits_for_a_thread_releases_the_payment(self):
        other = base64.b64encode(base64.b64decode(PAYMENT) + b" ").decode()
        settling, leave, released = threading.Event(), threading.Event(), threading.Event()
        self.intercept("/settle", lambda: (settling.set(), leave.wait(10)))
        self.intercept("/release", released.set)
        self.shop._concluding = asgi._Threads(1, None)

        async def cancel():
            first = self.visit(PAYMENT)
            await asyncio.to_thread(settling.wait, 10)
            served = asyncio.Event()
            self.wait = served.set
            second = self.visit(other)
            await served.wait()
            second.cancel()
            await asyncio.wait([second])
            self.assertTrue(await asyncio.to_thread(released.wait, 10))
            leave.set()
            await first

        asyncio.run(cancel())
        self.assertEqual((self.buy(payment_signature=other).status, len(self.runs)), (200, 3))

    def test_a_websocket_on_a_sold_path_is_refused_and_others_pass(self):
        sent = []

        async def send(message):
            sent.append(message)

        asyncio.run(self.shop(self.scope("websocket", "/paid", {}), None, send))
        self.assertEqual(([one["type"] for one in sent], self.runs), (["websocket.close"], []))
        asyncio.run(self.shop({"type": "lifespan"}, None, send))
        self.assertEqual(len(self.runs), 1)


class Parts(unittest.TestCase):
    def test_challenges_are_split_outside_of_quotes_only(self):
        parts = split_challenges(challenge()["mpp"])
        self.assertEqual(parts, ['Payment id="a", description="one, Payment two", request="e30"', 'Payment id="b", request="e30"'])

    def test_options_with_which_nothing_can_be_sold_are_refused_at_once(self):
        for options in ({"price": "$1"}, {"price": 0.01}, {"price": "1", "protocols": []}, {"price": "1", "on_pending": "x"}):
            self.assertRaises(ValueError, lambda given=options: Route(**given))
        purser = Purser("svc_test_sk_1", "https://a.test")
        self.assertRaises(ValueError, wsgi.WsgiSeller, None, purser, "wallet", {"/a": "1"})
        self.assertRaises(ValueError, wsgi.WsgiSeller, None, purser, WALLET, {"a": "1"})
