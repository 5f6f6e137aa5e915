"""HTTP for the client: the standard library, or ``httpx`` if it is installed. Redirects are never followed."""

from __future__ import annotations

import http.client
import os
import threading
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Protocol, Tuple
from urllib.parse import urlsplit


class Response(NamedTuple):
    """A response that was read completely. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_second: bool = False
    """Whether the request was sent before, on a connection that broke."""


class Streamed(NamedTuple):
    """A response whose lines are read as they arrive."""

    status: int
    headers: Mapping[str, str]
    lines: Iterator[bytes]


class HttpRequest(NamedTuple):
    method: str
    url: str
    headers: Mapping[str, str]
    body: Optional[bytes]
    timeout: float


class Connections(Protocol):
    """Sends requests. Raises ``OSError`` if there is no response."""

    def send(self, request: HttpRequest) -> Response: ...

    def stream(self, request: HttpRequest) -> Streamed: ...

    def close(self) -> None: ...


class StandardConnections:
    """
    Connections of ``http.client``, kept open and reused. Safe for several threads. A forked process opens connections of
    its own.
    """

    def __init__(self, idle_max: int = 8) -> None:
        self._idle_max = idle_max
        self._begin_process()

    def send(self, request: HttpRequest) -> Response:
        parts = urlsplit(request.url)
        key = (parts.scheme, parts.netloc)
        kept = self._take(key) if _is_repeatable(request) else None
        if kept is not None:
            try:
                return self._exchange(kept, key, request)
            except (http.client.RemoteDisconnected, ConnectionError):
                pass  # The server closed the idle connection. One attempt on a new connection follows.
        return self._exchange(_open(key, request.timeout), key, request)._replace(is_second=kept is not None)

    def stream(self, request: HttpRequest) -> Streamed:
        parts = urlsplit(request.url)
        connection = _open((parts.scheme, parts.netloc), request.timeout)
        try:
            response = _begin(connection, request)
        except BaseException:
            connection.close()
            raise
        return Streamed(response.status, _lower(response.getheaders()), _lines(connection, response))

    def close(self) -> None:
        with self._own_lock():
            idle, self._idle = self._idle, {}
        _close_all(idle)

    def _exchange(
        self, connection: http.client.HTTPConnection, key: Tuple[str, str], request: HttpRequest
    ) -> Response:
        try:
            response = _begin(connection, request)
            body = response.read()
        except http.client.RemoteDisconnected:
            connection.close()
            raise
        except http.client.HTTPException as error:
            connection.close()
            raise OSError(f"the response is not HTTP: {type(error).__name__}") from error
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._keep(key, connection)
        return Response(response.status, _lower(response.getheaders()), body)

    def _own_lock(self) -> threading.Lock:
        if self._process != os.getpid():
            idle = self._idle
            self._begin_process()
            _close_all(idle)  # Neither a socket nor TLS of Python tells the server, which still serves the other process.
        return self._lock

    def _begin_process(self) -> None:
        """
        Begins without connections: two processes that share one would read each other's responses. After a fork the old
        lock may be that of a thread that was not forked. The process is set last, because another thread may read it
        meanwhile.
        """
        self._lock = threading.Lock()
        self._idle: Dict[Tuple[str, str], List[http.client.HTTPConnection]] = {}
        self._process = os.getpid()

    def _take(self, key: Tuple[str, str]) -> Optional[http.client.HTTPConnection]:
        with self._own_lock():
            idle = self._idle.get(key)
            return idle.pop() if idle else None

    def _keep(self, key: Tuple[str, str], connection: http.client.HTTPConnection) -> None:
        with self._own_lock():
            idle = self._idle.setdefault(key, [])
            if len(idle) < self._idle_max:
                idle.append(connection)
                return
        connection.close()


class HttpxConnections:
    """
    Connections of an ``httpx.Client`` of yours, for proxies, HTTP/2 or own certificates. Open the client after a fork:
    httpx shares its connections with the forked process.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def send(self, request: HttpRequest) -> Response:
        method, url, headers, body, timeout = request
        with self._guarded():
            response = self._client.request(
                method, url, headers=dict(headers), content=body, timeout=timeout, follow_redirects=False
            )
        return Response(response.status_code, _lower(response.headers.items()), response.content)

    def stream(self, request: HttpRequest) -> Streamed:
        method, url, headers, body, timeout = request
        built = self._client.build_request(method, url, headers=dict(headers), content=body, timeout=timeout)
        with self._guarded():
            response = self._client.send(built, stream=True, follow_redirects=False)
        return Streamed(response.status_code, _lower(response.headers.items()), self._lines(response))

    def close(self) -> None:
        self._client.close()

    def _lines(self, response: Any) -> Iterator[bytes]:
        try:
            with self._guarded():
                for line in response.iter_lines():
                    yield line.rstrip("\r\n").encode()
        finally:
            response.close()

    def _guarded(self) -> "_HttpxErrors":
        return _HttpxErrors()


class _HttpxErrors:
    """Turns a transport error of httpx into an ``OSError``."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: Any, error: Optional[BaseException], _trace: Any) -> None:
        import httpx

        if isinstance(error, httpx.TimeoutException):
            raise TimeoutError(str(error)) from error
        if isinstance(error, httpx.TransportError):
            raise OSError(str(error)) from error


def _close_all(idle: Mapping[Tuple[str, str], List[http.client.HTTPConnection]]) -> None:
    for connections in list(idle.values()):
        for connection in list(connections):
            connection.close()


def _is_repeatable(request: HttpRequest) -> bool:
    """Whether a request may be sent twice. Others get a new connection, which no server has closed in the meantime."""
    return request.method in ("GET", "HEAD") or "idempotency-key" in request.headers


def _open(key: Tuple[str, str], timeout: float) -> http.client.HTTPConnection:
    scheme, netloc = key
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    return kind(netloc, timeout=timeout)


def _begin(connection: http.client.HTTPConnection, request: HttpRequest) -> http.client.HTTPResponse:
    if connection.sock is not None:
        connection.sock.settimeout(request.timeout)
    parts = urlsplit(request.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    connection.request(request.method, target or "/", body=request.body, headers=dict(request.headers))
    return connection.getresponse()


def _lines(connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        for line in response:
            yield line.rstrip(b"\r\n")
    except http.client.HTTPException as error:
        raise OSError(f"the stream ended early: {type(error).__name__}") from error
    finally:
        response.close()
        connection.close()


def _lower(headers: Any) -> Dict[str, str]:
    joined: Dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined
