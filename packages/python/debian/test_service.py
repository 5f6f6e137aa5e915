"""The package against a running service, with pytest, Flask, FastAPI and httpx of Debian. ``npm run test:debian-python`` runs it."""

import base64
import json
import os
import socket
import threading
import time

import fastapi
import flask
import httpx
import pytest
import uvicorn
from purser import ConflictError, ConnectionFailedError, File, NotFoundError, PermissionDeniedError, Purser, Retry
from purser import ValidationError
from purser.asgi import AsgiSeller, Route
from purser.connections import HttpxConnections
from purser.webhooks import WebhookVerificationError, unwrap
from purser.wsgi import WsgiSeller
from werkzeug.serving import make_server

URL, KEY, WALLET = (os.environ[name] for name in ("PURSER_BASE_URL", "PURSER_API_KEY", "WALLET"))


def connections_of(kind):
    return {"connections": HttpxConnections(httpx.Client())} if kind == "httpx" else {}


@pytest.fixture(params=["standard", "httpx"])
def purser(request):
    """A client with each kind of connections."""
    with Purser(KEY, URL, **connections_of(request.param)) as client:
        yield client


@pytest.fixture(scope="module")
def funded():
    """A managed wallet with 5 USDC, which pays at most 0.50 at a time."""
    with Purser(KEY, URL) as client:
        wallet = client.wallets.master.create(name="Agent", chain="base", supported_tokens=["USDC"])
        client.wallets.master.policy.set(
            wallet["id"], operations={"pay": {"recipients": "any"}}, tokens={"USDC": {"perTransaction": "0.50"}}
        )
        client.test.deposits.create(wallet_id=wallet["id"], token="USDC", amount="5")
        ends_at = time.monotonic() + 60
        while not any(float(one["formattedBalance"]) for one in client.wallets.master.balances(wallet["id"])):
            assert time.monotonic() < ends_at, "the deposit did not arrive"
            time.sleep(0.2)
        yield wallet["id"]


def flask_app():
    app = flask.Flask("shop")

    @app.get("/forecast")
    def forecast():
        return {"sky": "clear", "paymentId": flask.request.environ["purser.payment"]["paymentId"]}

    @app.post("/echo")
    def echo():
        return flask.Response(flask.request.get_data(), mimetype="application/octet-stream")

    @app.get("/breaks")
    def breaks():
        raise RuntimeError("the printer is on fire")

    @app.get("/free")
    def free():
        return "free"

    return app


def fastapi_app():
    app = fastapi.FastAPI()

    @app.get("/forecast")
    def forecast(request: fastapi.Request):
        return {"sky": "clear", "paymentId": request.scope["purser.payment"]["paymentId"]}

    @app.post("/echo")
    async def echo(request: fastapi.Request):
        return fastapi.Response(await request.body(), media_type="application/octet-stream")

    @app.get("/breaks")
    def breaks():
        raise RuntimeError("the printer is on fire")

    @app.get("/free")
    async def free():
        return "free"

    return app


ROUTES = {"/forecast": Route("0.01", description="Weather"), "/echo": "0.02", "/breaks": "0.01", "/dear": "0.60"}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module", params=["flask", "fastapi"])
def shop(request):
    """The address of an application that sells ``ROUTES`` to WALLET."""
    client = Purser(KEY, URL)
    if request.param == "flask":
        app = flask_app()
        app.wsgi_app = WsgiSeller(app.wsgi_app, client, WALLET, ROUTES)
        server = make_server("127.0.0.1", 0, app, threaded=True)
        thread, stop, port = threading.Thread(target=server.serve_forever), server.shutdown, server.server_port
        thread.start()
    else:
        app = fastapi_app()
        app.add_middleware(AsgiSeller, purser=client, wallet_id=WALLET, routes=ROUTES)
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)

        def stop():
            server.should_exit = True

    yield f"http://127.0.0.1:{port}"
    stop()
    thread.join()
    client.close()


def test_without_payment_a_402_has_both_protocols(shop):
    answer = httpx.get(f"{shop}/forecast?city=Lima")
    assert answer.status_code == 402
    offer = json.loads(base64.b64decode(answer.headers["payment-required"]))
    assert offer["resource"]["url"] == f"{shop}/forecast?city=Lima"
    assert answer.headers["www-authenticate"].startswith("Payment ")
    assert httpx.get(f"{shop}/free").status_code == 200


def test_a_managed_wallet_pays_the_route_with_real_money(shop, funded, purser):
    key = f"forecast-{os.urandom(8).hex()}"
    terms = {"from_wallet_id": funded, "url": f"{shop}/forecast?city=Lima", "max_amount": "0.05"}
    paid = purser.wallets.pay(**terms, idempotency_key=key)
    assert (paid["outcome"], paid["amount"], paid["response"]["status"]) == ("paid", "0.01", 200)
    goods = json.loads(paid["response"]["body"])
    assert goods["sky"] == "clear"
    assert paid["response"]["receipt"]["txHash"].startswith("0x")
    payment = purser.payments.get(goods["paymentId"])
    assert (payment["status"], payment["amount"], payment["walletId"]) == ("settled", "0.01", WALLET)
    assert purser.wallets.pay(**terms, idempotency_key=key)["id"] == paid["id"]


def test_a_body_goes_to_the_handler_once_it_is_paid(shop, funded, purser):
    paid = purser.wallets.pay(
        from_wallet_id=funded, url=f"{shop}/echo", method="POST", body="what a day", max_amount="0.05", prefer="mpp"
    )
    assert (paid["method"], paid["response"]["body"]) == ("mpp/evm-charge", "what a day")


def test_a_handler_that_raises_is_not_charged(shop, funded, purser):
    failed = purser.wallets.pay(from_wallet_id=funded, url=f"{shop}/breaks", max_amount="0.05")
    assert (failed["outcome"], failed["response"]["status"]) == ("unknown", 500)


def test_a_url_without_a_price_is_free(shop, funded, purser):
    free = purser.wallets.pay(from_wallet_id=funded, url=f"{shop}/free", max_amount="0.05")
    assert (free["id"], free["response"]["status"]) == (None, 200)


def test_the_limits_of_the_caller_and_of_the_policy_hold(shop, funded, purser):
    with pytest.raises(ValidationError) as refused:
        purser.wallets.pay(from_wallet_id=funded, url=f"{shop}/echo", method="POST", max_amount="0.01")
    assert refused.value.code == "no-payable-offer"
    with pytest.raises(PermissionDeniedError) as denied:
        purser.wallets.pay(from_wallet_id=funded, url=f"{shop}/dear", max_amount="1")
    assert denied.value.code == "policy-denied"


def test_faults_are_exceptions_with_their_problem(purser):
    wallet = {"address": "0x" + os.urandom(20).hex(), "chain": "base-sepolia", "supported_tokens": ["USDC"]}
    made = purser.wallets.byo.create(**wallet)
    with pytest.raises(ConflictError) as conflict:
        purser.wallets.byo.create(**wallet)
    assert (conflict.value.status, bool(conflict.value.request_id)) == (409, True)
    purser.wallets.byo.delete(made["id"])
    with pytest.raises(NotFoundError):
        purser.vaults.get("vlt_01h455vb4pex5vsknk084sn02q")


def test_a_list_has_all_pages(purser):
    vaults = {purser.vaults.create(description=f"page {number}")["id"] for number in range(3)}
    read = [one["id"] for one in purser.vaults.list(limit=2)]
    assert vaults <= set(read)
    assert len(read) == len(set(read))


def test_a_file_goes_up_and_comes_back_and_the_vault_is_sealed(purser):
    vault = purser.vaults.create(description="Findings")["id"]
    content = os.urandom(70_000)
    sent = purser.vaults.files.add(vault, file=File(content, "noise.bin", "application/octet-stream"))
    assert purser.vaults.files.get(vault, sent["id"]) == content
    purser.vaults.emit(vault, event="ready", payload={"pages": 3})
    purser.vaults.seal(vault, summary="Noise")
    types = [one.json()["type"] for one in purser.vaults.events(vault, from_="2026-01-01T00:00:00Z")]
    assert types[-1] == "vault.sealed"
    assert "ready" in types


def test_a_signed_event_is_verified_and_a_changed_one_refused(purser):
    secret = purser.events.listener()["secret"]
    event_id = purser.events.trigger(type="payment.settled")["id"]
    ends_at = time.monotonic() + 60
    found = None
    while found is None:
        assert time.monotonic() < ends_at, "the stream has no such event"
        streamed = purser.events.stream(from_="2026-01-01T00:00:00Z", follow="false")
        found = next((one.json() for one in streamed if one.json()["eventId"] == event_id), None)
    event = unwrap(found["body"], found["headers"], secret)
    assert (event.type, event.event_id) == ("payment.settled", event_id)
    with pytest.raises(WebhookVerificationError):
        unwrap(found["body"] + " ", found["headers"], secret)


@pytest.mark.parametrize("kind", ["standard", "httpx"])
def test_a_service_that_does_not_answer_is_a_failed_connection(kind):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for url in (f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{silent.getsockname()[1]}"):
            with Purser(KEY, url, timeout=0.3, retry=Retry(max_retries=0), **connections_of(kind)) as client:
                with pytest.raises(ConnectionFailedError):
                    client.account.get()


def test_httpx_keeps_its_connection_and_follows_no_redirect():
    seen = []

    def answer(request):
        seen.append(request.url.path)
        return httpx.Response(307, headers={"location": f"{URL}/elsewhere"})

    client = httpx.Client(transport=httpx.MockTransport(answer), follow_redirects=True)
    with Purser(KEY, URL, retry=Retry(max_retries=0), connections=HttpxConnections(client)) as purser:
        with pytest.raises(Exception) as failed:
            purser.account.get()
    assert failed.value.status == 307
    assert seen == ["/account"]
