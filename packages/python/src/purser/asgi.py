"""Sells routes of an ASGI application (version 3): FastAPI, Starlette, Quart, Django and others. Runs on asyncio."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Awaitable, Callable, Dict, List, Mapping, MutableMapping, Optional, Sequence, Union
from urllib.parse import quote, unquote_to_bytes

from .client import Purser
from .selling import (
    CONDITIONS,
    SaleResponse,
    Fault,
    HeaderList,
    Paid,
    Request,
    Route,
    Routes,
    Seller,
    is_sold,
    problem_response,
    route_of,
    sent_response,
    sold_headers,
)

__all__ = ["AsgiSeller", "Fault", "Route", "request_of", "sell"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# Frameworks declare their scopes, messages and channels in different ways.
Application = Callable[[Any, Any, Any], Awaitable[None]]


class AsgiSeller:
    """
    Wraps an application so that its ``routes`` are sold. Paths that ``routes`` does not name are free. A handler finds
    the payment in ``scope["purser.payment"]``. Nothing of a response is sent before it is paid for. The service is
    called in threads of the seller's own, so that neither the event loop nor other threads of the application wait for
    it. When too many requests wait, further ones are refused with 503. A WebSocket on a sold path is refused.
    """

    def __init__(
        self,
        app: Application,
        purser: Purser,
        wallet_id: str,
        routes: Mapping[str, Union[Route, str]],
        *,
        other_wallet_ids: Sequence[str] = (),
        public_url: Optional[str] = None,
        on_fault: Optional[Callable[[Fault], None]] = None,
    ) -> None:
        self._app = app
        self._routes = Routes(routes)
        options: Dict[str, Any] = {"other_wallet_ids": other_wallet_ids, "public_url": public_url}
        self.seller = Seller(purser, wallet_id, **options, on_fault=on_fault)
        self._admitting = _Threads(_THREADS, _WAITING_MAX)
        # A request that was admitted has a place, so these calls are as many as the served requests.
        self._concluding = _Threads(_THREADS, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._route_of(scope) if scope["type"] in ("http", "websocket") else None
        if route is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "This path is sold over HTTP."})
        elif isinstance(route, SaleResponse):
            await _send_response(route, scope, send)
        else:
            await self._sell(route, scope, receive, send)

    def _route_of(self, scope: Scope) -> Union[Route, SaleResponse, None]:
        return self._routes.find(*_paths_of(scope)) if _is_readable(scope) else problem_response("malformed-request")

    async def _sell(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        admitting = self._admitting.run(lambda: self.seller.admit(route, request_of(scope)), _give_up)
        admitted = problem_response("payments-unavailable", 5) if admitting is None else await admitting
        if admitted is None:
            await self._app(scope, receive, send)
        elif isinstance(admitted, SaleResponse):
            await _send_response(admitted, scope, send)
        else:
            await self._serve(admitted, scope, receive, send)

    async def _serve(self, paid: Paid, scope: Scope, receive: Receive, send: Send) -> None:
        # Extensions would let the application send a response past the buffer.
        headers = [(name, value) for name, value in scope["headers"] if bytes(name).decode("latin-1").lower() not in CONDITIONS]
        own = {**scope, "headers": headers, "extensions": {}, "purser.payment": paid.payment}
        buffered = _Buffered(paid, scope, send, self._concluding)
        try:
            await self._app(own, receive, buffered.take)
            if not buffered.is_done:
                raise RuntimeError("The application sent no complete response.")
        except BaseException:
            buffered.abort()
            raise


def sell(
    app: Application, purser: Purser, wallet_id: str, price: Union[Route, str], **options: Any
) -> AsgiSeller:
    """Sells every path of an application for one price."""
    return AsgiSeller(app, purser, wallet_id, {"/*": route_of(price)}, **options)


# Threads that call the service for new requests, as many for responses, and most new requests that wait for one.
_THREADS = 16
_WAITING_MAX = 64


class _Threads:
    """
    Threads for calls of the service. Those of asyncio are the application's, which also looks up names there: while the
    service is slow, requests without a payment would take all of them.
    """

    def __init__(self, count: int, waiting_max: Optional[int]) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="purser")
        self._open_max = None if waiting_max is None else count + waiting_max
        self._open = 0
        self._lock = threading.Lock()

    def run(self, call: Callable[[], Any], give_up: "Callable[[Future[Any]], None]") -> Optional[Awaitable[Any]]:
        """
        Calls in a thread; None if too many calls wait. If the task that waits is canceled, the thread goes on, and
        ``give_up`` gets the ended call: nobody else reads its result.
        """
        with self._lock:
            if self._open == self._open_max:
                return None
            self._open += 1
        future = self._executor.submit(call)
        future.add_done_callback(self._release)
        return self._result_of(future, give_up)

    @staticmethod
    async def _result_of(future: "Future[Any]", give_up: "Callable[[Future[Any]], None]") -> Any:
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(give_up)
            raise

    def _release(self, _: "Future[Any]") -> None:
        with self._lock:
            self._open -= 1


def _give_up(admitting: "Future[Any]") -> None:
    """Ends a payment whose request was canceled while the payment was verified."""
    if not admitting.cancelled() and admitting.exception() is None and isinstance(admitting.result(), Paid):
        admitting.result().failed()


class _Buffered:
    """Takes a response of the application into memory. Its last part settles the payment and sends the response."""

    def __init__(self, paid: Paid, scope: Scope, send: Send, concluding: "_Threads") -> None:
        self._paid = paid
        self._concluding = concluding
        self._scope = scope
        self._send = send
        self._status = 0
        self._headers: HeaderList = []
        self._chunks: List[bytes] = []
        self._size = 0
        self.is_done = False

    async def take(self, message: Message) -> None:
        if self.is_done:
            return
        if message["type"] == "http.response.start":
            self._status = message["status"]
            pairs = message.get("headers", [])
            self._headers = [(bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in pairs]
        elif message["type"] == "http.response.body":
            await self._take_body(message)

    def abort(self) -> None:
        """The application failed before its response was complete."""
        if not self.is_done:
            self.is_done = True
            self._paid.failed()

    async def _take_body(self, message: Message) -> None:
        if self._status == 0:
            raise RuntimeError("The application sent a body before its status.")
        chunk = message.get("body", b"")
        self._size += len(chunk)
        if self._size > self._paid.context.route.body_bytes_max:
            self.is_done = True
            await _send_response(self._paid.too_large(), self._scope, self._send)
            return
        self._chunks.append(chunk)
        if not message.get("more_body", False):
            # A status that is no number raises here, before the response counts as complete.
            is_charged = is_sold(self._status)
            self.is_done = True
            await self._finish(is_charged)

    async def _finish(self, is_charged: bool) -> None:
        if not is_charged:
            self._paid.failed()
            await _send_whole(self._send, self._status, self._headers, b"".join(self._chunks))
            return
        # Canceled before a thread took it, nothing is settled.
        give_up: "Callable[[Future[Any]], None]" = lambda call: self._paid.failed() if call.cancelled() else None
        concluding = self._concluding.run(self._paid.conclude, give_up)
        assert concluding is not None
        concluded = await concluding
        if isinstance(concluded, SaleResponse):
            await _send_response(concluded, self._scope, self._send)
            return
        headers = sold_headers(self._headers, concluded)
        await _send_whole(self._send, self._status, headers, b"".join(self._chunks))


def request_of(scope: Scope) -> Request:
    """The request of an HTTP scope."""
    headers: Dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = bytes(raw_name).decode("latin-1").lower(), bytes(raw_value).decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    raw_path = scope.get("raw_path")
    path = quote(scope["path"], safe="/;=,:@!$&'()*+~") if raw_path is None else raw_path.decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")
    server = scope.get("server") or ("", None)
    host = headers.get("host") or (server[0] if server[1] is None else f"{server[0]}:{server[1]}")
    target = path.split("?")[0] + (f"?{query}" if query else "")
    return Request(scope["method"], f"{scope.get('scheme', 'http')}://{host}", target, headers, scope)


def _is_readable(scope: Scope) -> bool:
    """Whether all frameworks read one path: it is UTF-8, and does not begin with an origin."""
    path: str = scope["path"]
    raw_path: bytes = (scope.get("raw_path") or b"").split(b"?")[0]
    try:
        path.encode()
        unquote_to_bytes(raw_path).decode()
    except UnicodeError:
        return False
    return path == "" or path.startswith("/")


def _paths_of(scope: Scope) -> List[str]:
    """
    The whole path, and the path below the place where the application is mounted. Servers give either as the path.
    Quart takes what follows the mount wherever that is in the path.
    """
    path, root = scope["path"], scope.get("root_path", "").rstrip("/")
    is_whole = path == root or path.startswith(root + "/")
    below = [path.split(root, 1)[1]] if root != "" and root in path else []
    return [path, *below] if is_whole else [root + path, *below, path]


async def _send_response(response: SaleResponse, scope: Scope, send: Send) -> None:
    sent = sent_response(response, scope["method"].upper())
    await _send_whole(send, sent.status, sent.headers, sent.body)


async def _send_whole(send: Send, status: int, headers: HeaderList, body: bytes) -> None:
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
