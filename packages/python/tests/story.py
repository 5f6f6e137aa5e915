"""Sells a route and reads signed events with a running service: ``python3 -m tests.story URL KEY WALLET``."""

import base64
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from wsgiref.simple_server import WSGIRequestHandler, make_server

from purser import ConflictError, Purser
from purser.asgi import AsgiSeller
from purser.webhooks import WebhookVerificationError, unwrap
from purser.wsgi import WsgiSeller

from .test_selling import Asgi


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def fetch(url, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=named), timeout=30) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as response:
        return response.code, response.headers, response.read()


def forecast(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"rain, paid by {environ['purser.payment']['paymentId']}".encode()]


def sell_over_wsgi(purser, wallet_id):
    app = WsgiSeller(forecast, purser, wallet_id, {"/forecast": "0.01"})
    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/forecast?city=Lima"
        try:
            unpaid, bad = fetch(url), fetch(url, payment_signature="bm90IGEgcGF5bWVudA==")
            paid, mpp = fetch(url, payment_signature="stub_payment_accepted"), fetch(url, authorization="Payment stub_payment_accepted")
        finally:
            server.shutdown()
            thread.join()
    offer = json.loads(base64.b64decode(unpaid[1]["PAYMENT-REQUIRED"]))
    receipt = json.loads(base64.b64decode(paid[1]["PAYMENT-RESPONSE"]))
    payment_id = paid[2].decode().rsplit(" ", 1)[-1]
    payment = purser.payments.get(payment_id)
    return {
        "unpaid": [unpaid[0], offer["resource"]["url"] == url, "WWW-Authenticate" in unpaid[1]],
        "bad": [bad[0], b"rain" in bad[2]],
        "paid": [paid[0], receipt["success"], payment["status"], payment["amount"], payment["resource"] == url],
        "mpp": [mpp[0], "Payment-Receipt" in mpp[1]],
    }


def sell_over_asgi(purser, wallet_id):
    stage = Asgi()
    stage.runs, stage.error, stage.response = [], None, (200, [], b"rain")
    stage.shop = AsgiSeller(stage.app, purser, wallet_id, {"/paid": "0.02"})
    unpaid, paid = stage.buy(), stage.buy(payment_signature="stub_payment_accepted")
    return [unpaid.status, paid.status, paid.body.decode(), len(stage.runs)]


def read_signed_events(purser):
    secret = purser.events.listener()["secret"]
    sent = purser.events.trigger(type="payment.settled")
    delivery = delivery_of(purser, sent["id"])
    headers = delivery["headers"]
    own = {name: value for name, value in headers.items() if name.lower().startswith("x-")}
    reasons, found = [], []
    for one in (headers, own):
        found.append(unwrap(delivery["body"], one, secret).type)
        try:
            unwrap(delivery["body"] + " ", one, secret)
        except WebhookVerificationError as error:
            reasons.append(error.reason)
    return [found, reasons]


def delivery_of(purser, event_id):
    """The stream has an event once every older transaction of the database server has ended, those of other tests too."""
    ends_at = time.monotonic() + 60
    while time.monotonic() < ends_at:
        for streamed in purser.events.stream(from_="2026-01-01T00:00:00Z", follow="false"):
            if streamed.json()["eventId"] == event_id:
                return streamed.json()
        time.sleep(0.1)
    raise TimeoutError(event_id)



def conflict(purser):
    wallet = {"address": "0x" + "5a" * 20, "chain": "base-sepolia", "supported_tokens": ["USDC"]}
    purser.wallets.byo.create(**wallet)
    try:
        purser.wallets.byo.create(**wallet)
    except ConflictError as error:
        return [error.status, error.code, bool(error.request_id)]
    return None


def main(url, key, wallet_id):
    with Purser(key, url) as purser:
        report = {
            "wsgi": sell_over_wsgi(purser, wallet_id),
            "asgi": sell_over_asgi(purser, wallet_id),
            "events": read_signed_events(purser),
            "conflict": conflict(purser),
            "logs": len([one for one in purser.payments.logs.list(limit=1)]) >= 3,
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
