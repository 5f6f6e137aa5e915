"""Requests with retries, idempotency keys and pages. The generated operations call it."""

from __future__ import annotations

import json
import random
import re
import secrets
import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Dict, Generic, Iterator, List, Mapping, NamedTuple, Optional, Tuple, TypeVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from .connections import Connections, HttpRequest, Response
from .errors import ConnectionFailedError, PurserError, UnavailableError, after_lost, error_of, is_quota

T = TypeVar("T")
R = TypeVar("R")


class Omitted:
    """The type of :data:`OMITTED`."""

    def __repr__(self) -> str:
        return "OMITTED"


OMITTED = Omitted()
"""The default of optional arguments: the member is not sent. ``None`` is sent as null."""


# Seconds after which the service has answered a payment of a URL, its slowest request, or has released its key.
_SLOWEST = 75.0
_TIMEOUT = 30.0
# The requests for which the service waits for a seller, or for a block.
_SLOW_PATHS = ("/wallet-infra/pay", "/wallet-infra/transfer")
# The least that an attempt counts of the time for a request in progress, so that a Retry-After of 0 ends too.
_WAIT_MIN = 0.5


class Retry(NamedTuple):
    """The number of times that a request is repeated, and the delays before, in seconds."""

    max_retries: int = 2
    """Attempts after the first."""
    delay_first: float = 0.5
    delay_max: float = 8.0
    retry_after_max: float = 60.0
    """With a longer ``Retry-After`` than this, the error is raised instead."""
    in_progress_max: float = _SLOWEST
    """
    The longest time to wait, after ``idempotency-in-progress``, for the request that still runs. These attempts do not
    count as retries. With 0, they do.
    """


class File(NamedTuple):
    """A file to upload."""

    content: bytes
    name: str = "file"
    content_type: str = "application/octet-stream"


class StreamEvent(NamedTuple):
    """One event of an event stream. ``data`` is JSON text."""

    id: Optional[str]
    event: str
    data: str

    def json(self) -> Any:
        return json.loads(self.data)


class Page(Generic[T]):
    """One page of a list. ``cursor`` leads to the next one, and is None for the last."""

    def __init__(self, items: List[T], cursor: Optional[str]) -> None:
        self.items = items
        self.cursor = cursor

    def __repr__(self) -> str:
        return f"Page({len(self.items)} items, cursor={self.cursor!r})"


class Listing(Generic[T]):
    """A list that is read page by page while it is iterated, by the ``Link`` headers of the responses."""

    def __init__(self, load: Callable[[Optional[str]], Page[T]]) -> None:
        self._load = load

    def page(self, cursor: Optional[str] = None) -> Page[T]:
        """One page: the first, or the one at the cursor of another page."""
        return self._load(cursor)

    def __iter__(self) -> Iterator[T]:
        page = self._load(None)
        while True:
            yield from page.items
            if page.cursor is None:
                return
            page = self._load(page.cursor)


class Transport:
    """Sends the requests of one API key to one address. The key goes to this address only."""

    def __init__(
        self, base_url: str, api_key: str, *, connections: Connections, timeout: Optional[float], retry: Retry
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._connections = connections
        self._timeout = timeout
        self._retry = retry
        self.pause: Callable[[float], None] = time.sleep

    def with_retry(self, retry: Retry, timeout: float) -> "Transport":
        """The same connections with other patience."""
        settings = {"connections": self._connections, "timeout": timeout, "retry": retry}
        return Transport(self._base_url, self._api_key, **settings)  # type: ignore[arg-type]

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Any = OMITTED,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Returns the parsed JSON of a success, or None if it has no body. Raises a :class:`PurserError`."""
        payload = self._payload(method, body, idempotency_key)
        response = self._send(method, path, query, payload, timeout)
        return _json_of(response, payload[0].get("idempotency-key")) if response.body else None

    def download(
        self, path: str, *, query: Optional[Mapping[str, Any]] = None, timeout: Optional[float] = None
    ) -> bytes:
        """Returns the bytes of a success."""
        return self._send("GET", path, query, ({"accept": "*/*"}, None), timeout).body

    def upload(
        self,
        path: str,
        *,
        files: Mapping[str, File],
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Sends files as ``multipart/form-data``."""
        boundary = f"purser-{secrets.token_hex(16)}"
        headers = {
            "accept": "application/json",
            "content-type": f"multipart/form-data; boundary={boundary}",
            "idempotency-key": idempotency_key or _fresh_key(),
        }
        response = self._send("POST", path, None, (headers, _multipart(files, boundary)), timeout)
        return _json_of(response, headers["idempotency-key"])

    def listing(self, path: str, *, query: Mapping[str, Any], timeout: Optional[float] = None) -> Listing[Any]:
        """A list. Only the cursor of a link is used, so that no response can send the key to another host."""

        def load(cursor: Optional[str]) -> Page[Any]:
            own = query if cursor is None else {**query, "cursor": cursor}
            response = self._send("GET", path, own, self._payload("GET", OMITTED, None), timeout)
            items = _json_of(response)
            if not isinstance(items, list):
                raise _unreadable(response, "The response is not a list.")
            return Page(items, next_cursor(response.headers.get("link")))

        return Listing(load)

    def events(
        self, path: str, *, query: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Iterator[StreamEvent]:
        """The events of a stream as they arrive. It ends with the connection; go on from the last id yourself."""
        headers = {"accept": "text/event-stream"}
        request = self._request("GET", path, query, (headers, None), timeout)
        streamed = self._with_retries(lambda: self._begin_stream(request))
        return _events_of(streamed)

    def _begin_stream(self, request: HttpRequest) -> Iterator[bytes]:
        try:
            streamed = self._connections.stream(request)
            if 200 <= streamed.status < 300:
                return streamed.lines
            body = b"\n".join(streamed.lines)
        except OSError as error:
            raise _no_response(error) from error
        raise _refusal(Response(streamed.status, streamed.headers, body))

    def _payload(self, method: str, body: Any, idempotency_key: Optional[str]) -> Any:
        headers = {"accept": "application/json"}
        if method == "POST":
            headers["idempotency-key"] = idempotency_key or _fresh_key()
        if isinstance(body, Omitted):
            return headers, None
        headers["content-type"] = "application/json"
        return headers, json.dumps(body, allow_nan=False).encode()

    def _request(self, method: str, path: str, query: Any, payload: Any, timeout: Optional[float]) -> HttpRequest:
        if not path.startswith("/"):  # It would be part of another host name.
            raise ValueError(f'path is {path!r}. Begin it with a slash, such as "/account".')
        headers, body = payload
        own = {"authorization": f"Bearer {self._api_key}", "user-agent": "purser-python/0.1.0"}
        url = self._base_url + path + _query_of(query or {})
        return HttpRequest(method, url, {**headers, **own}, body, timeout or self._timeout or _timeout_of(path))

    def _send(self, method: str, path: str, query: Any, payload: Any, timeout: Optional[float]) -> Response:
        request = self._request(method, path, query, payload, timeout)
        return self._with_retries(lambda: self._attempt(request), request.headers.get("idempotency-key"))

    def _attempt(self, request: HttpRequest) -> Response:
        try:
            response = self._connections.send(request)
        except OSError as error:
            raise _no_response(error) from error
        if 200 <= response.status < 300:
            return response
        raise _refusal(response)

    def _with_retries(self, attempt: Callable[[], R], key: Optional[str] = None) -> R:
        """A request in progress is waited for by time: a short count of attempts would end while it still pays."""
        tried, retries, waited, is_lost = 0, 0, 0.0, False
        max_retries, in_progress_max = self._retry.max_retries, self._retry.in_progress_max
        while True:
            try:
                return attempt()
            except PurserError as error:
                error.idempotency_key = key
                if is_lost:
                    after_lost(error)
                delay = retry_delay(self._retry, tried, error.retry_after, random.random())
                is_waited = error.code == "idempotency-in-progress" and max_retries > 0 and waited < in_progress_max
                if delay is None or not may_retry(error) or not (is_waited or retries < max_retries):
                    raise
                is_lost = is_lost or not error.is_outcome_known
            self.pause(delay)
            tried += 1
            if is_waited:
                waited += max(delay, _WAIT_MIN)
            else:
                retries += 1


def _timeout_of(path: str) -> float:
    """The default timeout of an attempt, in seconds: longer than the service takes."""
    return _SLOWEST if path in _SLOW_PATHS else _TIMEOUT


def path_of(template: str, **values: str) -> str:
    """A path with its parameters quoted. An empty one or dots would be the path of another operation."""
    for name, value in values.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} is {value!r}. Give the id as text, such as 'pay_01h455vb4pex5vsknk084sn02q'.")
        if value in ("", ".", ".."):
            raise ValueError(f"{name} is empty or dots: {value!r}. Give the id.")
        template = template.replace("{" + name + "}", quote(value, safe=""))
    return template


def present(members: Mapping[str, Any]) -> Dict[str, Any]:
    """The members that were given."""
    return {name: value for name, value in members.items() if not isinstance(value, Omitted)}


def may_retry(error: PurserError) -> bool:
    """Whether to repeat a request. A POST is safe to repeat: its attempts carry one Idempotency-Key."""
    if error.status is None or error.status == 408:
        return True
    if error.status == 409:
        return error.code == "idempotency-in-progress"
    if error.status == 429:
        return not is_quota(error.code)
    return error.status >= 500 and error.code != "chain-not-configured"


def retry_delay(retry: Retry, attempt: int, retry_after: Optional[float], chance: float) -> Optional[float]:
    """Seconds before the attempt after ``attempt``, or None if ``Retry-After`` exceeds the policy."""
    if retry_after is not None:
        return retry_after if retry_after <= retry.retry_after_max else None
    return min(retry.delay_first * 2**attempt, retry.delay_max) * (1 - chance / 4)


def read_retry_after(value: Optional[str], now: datetime) -> Optional[float]:
    """``Retry-After`` (RFC 9110, section 10.2.3) in seconds. None if it is absent or malformed."""
    if value is None:
        return None
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or timezone.utc) - now).total_seconds())


def next_cursor(link: Optional[str]) -> Optional[str]:
    """The ``cursor`` of the link with relation ``next`` (RFC 8288)."""
    for target, parameters in re.findall(r"<([^>]*)>([^<]*)", link or ""):
        if re.search(r';\s*rel="?(?:[^";]*\s)?next(?:\s[^";]*)?"?\s*(?:[;,]|$)', parameters, re.IGNORECASE):
            return (parse_qs(urlsplit(target).query).get("cursor") or [None])[0]
    return None


def _query_of(query: Mapping[str, Any]) -> str:
    pairs: List[Tuple[str, Optional[str]]] = []
    for name, value in query.items():
        if isinstance(value, Mapping):
            pairs += [(f"{name}.{member}", _text_of(one)) for member, one in value.items()]
        elif value is not None:
            pairs.append((name, _text_of(value)))
    pairs = [pair for pair in pairs if pair[1] is not None]
    return f"?{urlencode(pairs)}" if pairs else ""


def _text_of(value: Any) -> Optional[str]:
    if isinstance(value, Omitted):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _no_response(error: OSError) -> ConnectionFailedError:
    code = "timeout" if isinstance(error, TimeoutError) or "timed out" in str(error) else "connection-failed"
    return ConnectionFailedError(f"No response from Purser ({code}: {error}).", code=code)


def _json_of(response: Response, key: Optional[str] = None) -> Any:
    try:
        return json.loads(response.body)
    except ValueError:
        raise _unreadable(response, "The response is not JSON, so it is not from Purser.", key) from None


def _unreadable(response: Response, message: str, key: Optional[str] = None) -> UnavailableError:
    facts = {"status": response.status, "request_id": response.headers.get("x-request-id"), "idempotency_key": key}
    return UnavailableError(message, code="unreadable-answer", **facts)  # type: ignore[arg-type]


def _refusal(response: Response) -> PurserError:
    problem = _problem_of(response.body)
    request_id = (problem or {}).get("requestId") or response.headers.get("x-request-id")
    retry_after = read_retry_after(response.headers.get("retry-after"), datetime.now(timezone.utc))
    error = error_of(response.status, problem, request_id, retry_after)
    if response.is_second:
        after_lost(error)
    return error


def _problem_of(body: bytes) -> Optional[Dict[str, Any]]:
    """The problem record of a body. Proxies answer with HTML, which must not look like a refusal."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("status"), int):
        return None
    return value if isinstance(value.get("type"), str) and isinstance(value.get("title"), str) else None


def _fresh_key() -> str:
    return f"python-{secrets.token_hex(16)}"


def _multipart(files: Mapping[str, File], boundary: str) -> bytes:
    parts = []
    for field, file in files.items():
        if not isinstance(file, tuple):
            raise TypeError(f"{field} is {type(file).__name__}. Give File(content, name, content_type), with the content as bytes.")
        content, name, content_type = File(*file)
        if re.search(r"[\r\n]", name + content_type):
            raise ValueError("The name or the type of a file contains a line break. Remove it.")
        shown = name.replace("%", "%25").replace('"', "%22")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; filename="{shown}"\r\n'
        parts.append(f"{head}Content-Type: {content_type}\r\n\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


def _events_of(lines: Iterator[bytes]) -> Iterator[StreamEvent]:
    """Parses an event stream (HTML, section 9.2)."""
    last_id: Optional[str] = None
    event, data = "message", []  # type: ignore[var-annotated]
    try:
        for line in lines:
            if line == b"":
                if data:
                    yield StreamEvent(last_id, event, "\n".join(data))
                event, data = "message", []
                continue
            field, _, value = line.decode("utf-8", "replace").partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "id":
                last_id = value
            elif field == "event":
                event = value
            elif field == "data":
                data.append(value)
    except OSError as error:
        raise _no_response(error) from error
