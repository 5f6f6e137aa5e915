"""Sells routes of a WSGI application (PEP 3333): Flask, Django, Bottle and others."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote

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

__all__ = ["Fault", "Route", "WsgiSeller", "request_of", "sell"]

Environ = Dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
_MOUNT_PARTS_MAX = 32


class WsgiSeller:
    """
    Wraps an application so that its ``routes`` are sold. Paths that ``routes`` does not name are free. A handler finds
    the payment in ``environ["purser.payment"]``. Nothing of a response is sent before it is paid for.
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

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        paths = _paths_of(environ)
        route = problem_response("malformed-request") if paths is None else self._routes.find(*paths)
        if isinstance(route, SaleResponse):
            return _send(route, environ, start_response)
        return self._app(environ, start_response) if route is None else self._sell(route, environ, start_response)

    def _sell(self, route: Route, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        admitted = self.seller.admit(route, request_of(environ))
        if admitted is None:
            return self._app(environ, start_response)
        if isinstance(admitted, SaleResponse):
            return _send(admitted, environ, start_response)
        environ["purser.payment"] = admitted.payment
        for name in CONDITIONS:
            environ.pop("HTTP_" + name.upper().replace("-", "_"), None)
        return self._serve(admitted, environ, start_response)

    def _serve(self, paid: Paid, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        buffered = _Buffered(paid.context.route.body_bytes_max)
        try:
            buffered.run(self._app, environ)
            is_charged = is_sold(buffered.status_code)
        except BaseException:
            paid.failed()
            raise
        if buffered.is_too_large:
            return _send(paid.too_large(), environ, start_response)
        if not is_charged:
            paid.failed()
            start_response(buffered.status, buffered.headers)
            return [buffered.body]
        concluded = paid.conclude()
        if isinstance(concluded, SaleResponse):
            return _send(concluded, environ, start_response)
        start_response(buffered.status, sold_headers(buffered.headers, concluded))
        return [buffered.body]


def sell(
    app: Application, purser: Purser, wallet_id: str, price: Union[Route, str], **options: Any
) -> WsgiSeller:
    """Sells every path of an application for one price."""
    return WsgiSeller(app, purser, wallet_id, {"/*": route_of(price)}, **options)


class _Buffered:
    """Takes a response of the application into memory."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._chunks: List[bytes] = []
        self._size = 0
        self.status = ""
        self.headers: HeaderList = []
        self.is_too_large = False

    @property
    def status_code(self) -> int:
        return int(self.status[:3])

    @property
    def body(self) -> bytes:
        return b"".join(self._chunks)

    def run(self, app: Application, environ: Environ) -> None:
        response = app(environ, self._start)
        try:
            for chunk in response:
                self._take(chunk)
                if self.is_too_large:
                    break
        finally:
            close = getattr(response, "close", None)
            if close is not None:
                close()
        if self.status == "":
            raise RuntimeError("The application sent no response.")

    def _start(self, status: str, headers: List[Tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], None]:
        if self.status != "" and exc_info is None:
            raise RuntimeError("The application started a second response.")
        if exc_info is not None:
            self._chunks, self._size = [], 0
        self.status, self.headers = status, list(headers)
        return self._take

    def _take(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self.is_too_large = self._size > self._bytes_max
        if not self.is_too_large:
            self._chunks.append(chunk)


def request_of(environ: Environ) -> Request:
    """The request of an environ."""
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name[:5] == "HTTP_"}
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    query = environ.get("QUERY_STRING", "")
    target = quote(path or "/", safe="/;=,:@!$&'()*+~", encoding="latin-1") + (f"?{query}" if query else "")
    host = environ.get("HTTP_HOST") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
    origin = f"{environ['wsgi.url_scheme']}://{host}"
    return Request(environ["REQUEST_METHOD"], origin, target, headers, environ)


def _paths_of(environ: Environ) -> Optional[List[str]]:
    """
    The whole path, and the path from each place where the application may be mounted. None if it is not UTF-8, since
    frameworks then read different paths. Servers may read SCRIPT_NAME from a header, so its beginning may be any text.
    """
    try:
        # A path of an environ has each byte as a character (PEP 3333).
        mount, inner = (environ.get(name, "").encode("latin-1").decode() for name in ("SCRIPT_NAME", "PATH_INFO"))
    except UnicodeError:
        return None
    parts = mount.split("/")
    if len(parts) > _MOUNT_PARTS_MAX:
        return None
    outer = ["/".join(["", *parts[start:]]) + inner for start in range(1, len(parts))]
    return [mount + inner, *outer, inner]


def _send(response: SaleResponse, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    sent = sent_response(response, environ["REQUEST_METHOD"].upper())
    start_response(f"{sent.status} {HTTPStatus(sent.status).phrase}", sent.headers)
    return [sent.body] if sent.body else []
