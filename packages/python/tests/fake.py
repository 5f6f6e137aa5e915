"""A Purser of the outside, over real HTTP."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TX = "0x" + "ab" * 32
PAYER = "0x" + "11" * 20


def problem(status, code, **more):
    record = {"type": f"https://docs.test/problems/{code}", "title": code, "status": status, "detail": f"{code}."}
    return status, {**record, "requestId": "req_1", **more}, {}


class FakePurser:
    def __init__(self):
        self.seen = []
        self.scripts = {}
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_any(self):
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length)
                given = json.loads(body) if "json" in self.headers.get("content-type", "") else body
                headers = {name.lower(): value for name, value in self.headers.items()}
                peer = self.client_address[1]
                fake.seen.append(
                    {"method": self.command, "path": self.path, "headers": headers, "body": given, "peer": peer}
                )
                doing = fake.doing(self.path, given)
                if doing == "reset":
                    self.close_connection = True
                    self.connection.close()
                    return
                status, response, extra = doing
                raw = response if isinstance(response, bytes) else b"" if response is None else json.dumps(response).encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(raw)), **extra}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def script(self, path, *doings):
        """Reactions to requests to this path; the last one is repeated."""
        self.scripts[path] = list(doings)

    def calls(self, path):
        return [one for one in self.seen if one["path"].split("?")[0] == path]

    def doing(self, path, body):
        doings = self.scripts.get(path.split("?")[0])
        if doings:
            return doings[0] if len(doings) == 1 else doings.pop(0)
        return self.by_contract(path, body)

    def by_contract(self, path, body):
        if path == "/payments/challenge":
            return 200, challenge(), {}
        if path == "/payments/verify":
            return 200, verification(body["protocol"]), {}
        if path == "/payments/settle":
            settled = {"txHash": TX, "settledAt": "2026-11-26T12:00:00.000Z", "redemptionRequested": False, "receipt": None}
            return 200, settled, {}
        if path.endswith("/release"):
            return 200, {}, {}
        return problem(404, "not-found")


def challenge(**changes):
    mpp = 'Payment id="a", description="one, Payment two", request="e30", Payment id="b", request="e30"'
    known = {"x402": "eyJ4NDAyVmVyc2lvbiI6Mn0=", "x402V1": {"x402Version": 1, "accepts": []}, "mpp": mpp}
    return {**known, "expiresAt": "2030-01-01T00:00:00.000Z", **changes}


def verification(protocol="x402", **changes):
    return {
        "valid": True,
        "paymentId": "pay_1",
        "protocol": protocol,
        "scheme": "exact",
        "method": "evm" if protocol == "mpp" else None,
        "challengeId": "a" if protocol == "mpp" else None,
        "network": "eip155:84532",
        "amount": "0.01",
        "coin": "USDC",
        "payer": PAYER,
        "txHash": None,
        "settledAt": None,
        "settlementPending": True,
        "settlementToken": "st_secret",
        "redeemable": False,
        **changes,
    }
