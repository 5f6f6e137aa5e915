"""Decides which requests are served: what the WSGI and ASGI middlewares share. It fails closed."""

from __future__ import annotations

import base64
import copy
import json
import logging
import os
import queue
import re
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union
from urllib.parse import quote, unquote

from .client import Purser
from .errors import (
    AuthenticationError,
    ConflictError,
    PaymentRefusedError,
    PermissionDeniedError,
    PurserError,
    RateLimitError,
    UnavailableError,
    ValidationError,
)
from .transport import Retry

HeaderList = List[Tuple[str, str]]
_LOG = logging.getLogger("purser")
# It fails at no quotation mark, because a search that fails at each reads a stranger's header once for each of them.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*\\?"?', re.DOTALL)
_PRICE = re.compile(r"[0-9]{1,60}(?:\.[0-9]{1,60})?")
_ORIGIN = r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_BASE = re.compile(_ORIGIN)
_PUBLIC_URL = re.compile(_ORIGIN + r"((?:/[^\s?#]*)?)")
_STUB = "stub_payment_accepted"
# Above this, releases are left out. Purser voids such payments when their time is over.
_RELEASES_MAX = 1_000
_RELEASERS = 2
_PROBLEM_BASE = "https://paymentauth.org/problems/"
_EXPOSED = [
    "PAYMENT-REQUIRED",
    "PAYMENT-RESPONSE",
    "X-PAYMENT-RESPONSE",
    "WWW-Authenticate",
    "Payment-Receipt",
    "Retry-After",
]

_PROBLEMS = {
    "ambiguous-payment": (400, "Bad Request", "Send one payment, in one header."),
    "malformed-request": (400, "Bad Request", "The URL of this request is malformed."),
    "duplicate-payment": (
        409,
        "Conflict",
        "This payment has already been used. Sign a new one for another request.",
    ),
    "payment-identifier-conflict": (409, "Conflict", "The payment identifier already belongs to another payment."),
    "delivery-in-progress": (409, "Conflict", "This payment is being settled or served."),
    "response-too-large": (
        500,
        "Internal Server Error",
        "The response is too large to be sold. If the payment was not settled yet, it will not be.",
    ),
    "payments-misconfigured": (
        500,
        "Internal Server Error",
        "The payment configuration of this server is invalid. Nothing was served and nothing was charged.",
    ),
    "payments-unavailable": (
        503,
        "Service Unavailable",
        "Payments cannot be verified at the moment. Nothing was served and nothing was charged.",
    ),
    "settlement-unavailable": (
        503,
        "Service Unavailable",
        "The outcome of the settlement is unknown: the payment may still settle. Do not sign another one yet.",
    ),
}

_MPP_PROBLEMS = {
    "payment-required": (402, "Payment Required"),
    "malformed-credential": (402, "Malformed Credential"),
    "invalid-challenge": (402, "Invalid Challenge"),
    "payment-expired": (402, "Payment Expired"),
    "verification-failed": (402, "Verification Failed"),
    "payment-insufficient": (402, "Payment Insufficient"),
    "invalid-payload": (402, "Invalid Payload"),
    "payment-action-required": (402, "Payment Action Required"),
    "method-unsupported": (400, "Method Unsupported"),
    "bad-request": (400, "Bad Request"),
    "internal-payment-error": (500, "Internal Payment Error"),
}


class Fault(NamedTuple):
    """A fault that is reported to the seller, not to the payer."""

    stage: str
    """``challenge``, ``verify``, ``handler``, ``settle`` or ``release``."""
    error: BaseException
    payment: Optional[Mapping[str, Any]] = None
    settle_again: Optional[Callable[[], Any]] = None
    """Settles the payment. Safe to repeat. Present if the outcome of the settlement is unknown."""


@dataclass(frozen=True)
class Route:
    """The price of a route and the terms of its sale."""

    price: Union[str, Callable[[Any], str]]
    """US dollars as text, such as ``"0.01"``; or a function of the WSGI environ or the ASGI scope."""
    description: Optional[str] = None
    mime_type: Optional[str] = None
    protocols: Sequence[str] = ("x402", "mpp")
    on_pending: str = "release"
    """``release`` sends the response when the transaction is in a block, ``hold`` when it is final."""
    hold_seconds: float = 60.0
    body_bytes_max: int = 10_000_000
    free_methods: Sequence[str] = ()
    credential_header: str = "Authorization"

    def __post_init__(self) -> None:
        if not callable(self.price):
            check_price(self.price)
        if self.on_pending not in ("release", "hold"):
            raise ValueError(f'on_pending is {self.on_pending!r}. Give "release" or "hold".')
        if isinstance(self.protocols, str) or not set(self.protocols) or set(self.protocols) - {"x402", "mpp"}:
            raise ValueError(f'protocols is {self.protocols!r}. Use ["x402"], ["mpp"] or both.')
        if self.credential_header not in ("Authorization", "Payment-Authorization"):
            raise ValueError(f"credential_header is {self.credential_header!r}.")


class SaleResponse(NamedTuple):
    """A complete response instead of the handler's."""

    status: int
    headers: HeaderList
    body: bytes


class Request(NamedTuple):
    """A request, independent of the server interface."""

    method: str
    origin: str
    target: str
    headers: Mapping[str, str]
    """All values of a header, joined with commas. Names are in lower case."""
    own: Any


class Credential(NamedTuple):
    protocol: str
    value: str
    response_header: str
    network: str


class _Context(NamedTuple):
    route: Route
    price: str
    resource: str
    method: str


def check_price(price: Any) -> str:
    if not isinstance(price, str) or _PRICE.fullmatch(price) is None:
        raise ValueError(f'price is {price!r}. Give US dollars as text, such as "0.01", without a currency sign.')
    return price


def route_of(route: Union[Route, str]) -> Route:
    return route if isinstance(route, Route) else Route(route)


@dataclass
class Paid:
    """A verified payment whose handler has not finished. Call ``conclude`` once, or ``failed``."""

    seller: "Seller"
    context: _Context
    credential: Credential
    payment: Dict[str, Any]
    settlement_token: str
    _over: Callable[[], None] = field(repr=False)

    def conclude(self) -> Union[HeaderList, SaleResponse]:
        """Settles. Returns the headers of the receipt if the response may be sent, otherwise what to send instead."""
        try:
            return self._settled()
        finally:
            self._over()

    def failed(self) -> None:
        """The handler failed: nothing is settled."""
        self._unsold()
        if self.payment.get("txHash") is not None:
            error = RuntimeError("The handler failed after the money had moved.")
            self.seller.report(Fault("handler", error, self.payment))

    def too_large(self) -> SaleResponse:
        self._unsold()
        error = ValueError("The response exceeds body_bytes_max.")
        self.seller.report(Fault("handler", error, self.payment))
        return problem_response("response-too-large")

    def _unsold(self) -> None:
        self._over()
        if self.payment["settlementPending"] and self.payment.get("txHash") is None:
            self.seller.release(self.payment["paymentId"], self.settlement_token)

    def _settled(self) -> Union[HeaderList, SaleResponse]:
        if not self.payment["settlementPending"]:
            return self._receipt(self.payment, pending=False)
        deadline = time.monotonic() + self.context.route.hold_seconds
        try:
            while True:
                settlement = self._settle()
                if "settledAt" in settlement:
                    return self._receipt(settlement, pending=False)
                if self.context.route.on_pending == "release" and settlement.get("txHash") is not None:
                    return self._receipt(settlement, pending=True)
                if time.monotonic() >= deadline:
                    raise PurserError("The settlement is still pending.", code="settlement-pending")
                self.seller.pause(0.5)
        except ConflictError as error:
            if error.code in ("settlement-failed", "payment-voided"):
                return self._unsettled(error)
            return self._unknown(error)
        except Exception as error:  # noqa: BLE001
            return self._unknown(error)

    def _settle(self) -> Dict[str, Any]:
        response: Any = self.seller.client.payments.settle(
            payment_id=self.payment["paymentId"], settlement_token=self.settlement_token
        )
        is_settled = isinstance(response, dict) and isinstance(response.get("settledAt"), str)
        if not is_settled and not (isinstance(response, dict) and response.get("status") == "settling"):
            raise UnavailableError("The response is not a settlement.", code="unreadable-answer")
        return dict(response)

    def _unknown(self, error: Exception) -> SaleResponse:
        self.seller.report(Fault("settle", error, self.payment, self._settle))
        return problem_response("settlement-unavailable", 5)

    def _unsettled(self, error: ConflictError) -> SaleResponse:
        is_x402 = self.credential.protocol == "x402"
        reason = error.problem.get("reason") or (error.code.replace("-", "_") if is_x402 else error.code)
        if not is_x402:
            return self.seller.request_payment(self.context, _Refusal("mpp", reason))
        failure = {"success": False, "errorReason": reason, "transaction": "", "network": self.credential.network}
        headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        headers.append((self.credential.response_header, _encode({**failure, **self._payer()})))
        return SaleResponse(402, headers, json.dumps({"error": reason}).encode())

    def _receipt(self, moved: Mapping[str, Any], pending: bool) -> HeaderList:
        if self.credential.protocol == "mpp":
            return [("Payment-Receipt", self._mpp_receipt(moved))]
        receipt: Dict[str, Any] = {
            "success": True,
            "transaction": moved.get("txHash") or "",
            "network": self.credential.network,
            **self._payer(),
        }
        if pending:
            receipt["extra"] = {"settlement": "pending"}
        return [(self.credential.response_header, _encode(receipt))]

    def _mpp_receipt(self, moved: Mapping[str, Any]) -> str:
        echoed = _mpp_challenge(self.credential.value)
        challenge_id = self.payment.get("challengeId") or echoed.get("id")
        chain = re.fullmatch(r"eip155:([1-9][0-9]{0,14})", self.payment.get("network") or "")
        receipt = {
            "status": "success",
            "method": self.payment.get("method") or echoed.get("method") or "stub",
            "timestamp": moved.get("settledAt") or _now(),
            "reference": moved.get("txHash") or challenge_id or self.payment["paymentId"],
            **({"challengeId": challenge_id} if challenge_id else {}),
            **({"chainId": int(chain.group(1))} if chain else {}),
        }
        return base64.urlsafe_b64encode(_compact(receipt)).decode().rstrip("=")

    def _payer(self) -> Dict[str, str]:
        payer = self.payment.get("payer")
        return {"payer": payer} if isinstance(payer, str) else {}


class _Refusal(NamedTuple):
    protocol: str
    reason: str
    message: Optional[str] = None
    has_moved: bool = False


class Seller:
    """Sells routes for one wallet. The middlewares make one from their arguments."""

    def __init__(
        self,
        purser: Purser,
        wallet_id: str,
        *,
        other_wallet_ids: Sequence[str] = (),
        public_url: Optional[str] = None,
        on_fault: Optional[Callable[[Fault], None]] = None,
    ) -> None:
        for one in (wallet_id, *other_wallet_ids):
            if re.fullmatch(r"(?:byw|mwt|cad)_[0-9a-z]+", one) is None:
                raise ValueError(f"wallet_id is {one!r}. Give the id of one of your wallets, such as byw_…")
        public = None if public_url is None else _PUBLIC_URL.fullmatch(public_url.rstrip("/"))
        if public_url is not None and public is None:
            raise ValueError(f"public_url is {public_url!r}. Give an http(s) URL, such as https://api.example.com.")
        # A payer is waiting, so the patience is shorter than the client's.
        retry = Retry(delay_first=0.2, delay_max=2.0, retry_after_max=2.0, in_progress_max=0)
        self.client = purser.with_retry(retry, 15.0)
        self.pause: Callable[[float], None] = time.sleep
        self._payee: Dict[str, Any] = {"wallet_id": wallet_id}
        if other_wallet_ids:
            self._payee["other_wallet_ids"] = list(other_wallet_ids)
        self._public_path = "" if public is None else public.group(1)
        self._public_origin = None if public is None else public.group(0)[: public.start(1)]
        self._on_fault = on_fault or _log_fault
        self._running: Set[Tuple[str, str, str]] = set()
        self._lock = threading.Lock()
        # A release is tried once and briefly: others wait behind it, and Purser voids the payment when its time is over.
        self._releasing = purser.with_retry(Retry(max_retries=0), 5.0)
        self._releases: "queue.Queue[Tuple[str, str]]" = queue.Queue(_RELEASES_MAX)
        self._releasers = 0
        self._process = os.getpid()

    def report(self, fault: Fault) -> None:
        """A failing callback must not change the outcome of a payment."""
        try:
            self._on_fault(fault)
        except Exception:  # noqa: BLE001
            _LOG.exception("on_fault raised")

    def release(self, payment_id: str, settlement_token: str) -> None:
        """
        Releases a payment that is not sold, in another thread: it takes no place of one that is. Never raises or
        waits. The process can end meanwhile.
        """
        with self._lock:
            if self._process != os.getpid():  # The threads belong to the process that was forked.
                self._releases, self._releasers, self._process = queue.Queue(_RELEASES_MAX), 0, os.getpid()
            try:
                self._releases.put_nowait((payment_id, settlement_token))
                while self._releasers < _RELEASERS:
                    threading.Thread(target=self._release_all, args=(self._releases,), daemon=True).start()
                    self._releasers += 1
            except (queue.Full, RuntimeError):
                pass  # Purser does not respond, or no thread can start, as when the process ends.

    def _release_all(self, waiting: "queue.Queue[Tuple[str, str]]") -> None:
        while True:
            self._release(*waiting.get())
            waiting.task_done()

    def _release(self, payment_id: str, settlement_token: str) -> None:
        try:
            self._releasing.payments.release(id=payment_id, settlement_token=settlement_token)
        except ConflictError:
            pass  # Another caller has sold the payment.
        except Exception as error:  # noqa: BLE001
            self.report(Fault("release", error))

    def admit(self, route: Route, request: Request) -> Union[SaleResponse, Paid, None]:
        """
        A response instead of the handler's, a verified payment, or None for a free method. A method that is not in
        capitals is refused: some frameworks read ``head`` as ``GET`` and others as ``HEAD``.
        """
        if request.method != request.method.upper():
            return problem_response("malformed-request")
        if request.method == "OPTIONS":
            return SaleResponse(204, [], b"")
        if request.method in route.free_methods:
            return None
        resource = _resource_of(self._public_origin or request.origin, self._public_path + request.target)
        if resource is None:
            return problem_response("malformed-request")
        credential = find_credential(request.headers)
        if credential == "ambiguous":
            return problem_response("ambiguous-payment")
        price = check_price(route.price(request.own) if callable(route.price) else route.price)
        context = _Context(route, price, resource, request.method)
        if not isinstance(credential, Credential) or credential.protocol not in route.protocols:
            return self.request_payment(context)
        return self._verify(context, credential)

    def request_payment(self, context: _Context, refusal: Optional[_Refusal] = None) -> SaleResponse:
        """
        The 402 with a fresh challenge in each protocol that the route accepts. It names no method, so that the challenge
        promises no price: another route or host of the seller may sell the same URL at another one.
        """
        route = context.route
        extra: Dict[str, Any] = {}
        if route.description is not None:
            extra["description"] = route.description
        if route.mime_type is not None:
            extra["mime_type"] = route.mime_type
        if route.credential_header != "Authorization":
            extra["credential_header"] = route.credential_header
        try:
            challenge: Any = self.client.payments.challenge(
                **self._payee,
                resource=context.resource,
                price=context.price,
                accept_x402="x402" in route.protocols,
                accept_mpp="mpp" in route.protocols,
                **extra,
            )
            return _challenge_response(challenge, refusal)
        except RateLimitError as error:
            self.report(Fault("challenge", error))
            return problem_response("payments-unavailable", error.retry_after or 5)
        except Exception as error:  # noqa: BLE001
            self.report(Fault("challenge", error))
            if _is_misconfigured(error):
                return problem_response("payments-misconfigured")
            return problem_response("payments-unavailable", 5)

    def _verify(self, context: _Context, credential: Credential) -> Union[SaleResponse, Paid]:
        key = (credential.value, context.method, context.resource)
        if credential.value != _STUB and not self._begin(key):
            return problem_response("delivery-in-progress", 5)
        try:
            verified = self._verified(context, credential)
            token = verified.pop("settlementToken")
            return Paid(self, context, credential, verified, token, lambda: self._end(key))
        except Exception as error:  # noqa: BLE001
            self._end(key)
            return self._refused(context, credential, error)

    def _verified(self, context: _Context, credential: Credential) -> Dict[str, Any]:
        extra: Dict[str, Any] = {}
        if context.route.description is not None:
            extra["description"] = context.route.description
        response: Any = self.client.payments.verify(
            protocol=credential.protocol,  # type: ignore[arg-type]
            credential=credential.value,
            price=context.price,
            currency="USD",
            **self._payee,
            resource=context.resource,
            method=context.method,
            **extra,
        )
        texts = ("paymentId", "settlementToken", "amount", "coin")
        is_verified = (
            isinstance(response, dict)
            and response.get("valid") is True
            and all(isinstance(response.get(name), str) for name in texts)
            and isinstance(response.get("settlementPending"), bool)
        )
        if not is_verified:
            raise UnavailableError("The response is not a verification.", code="unreadable-answer")
        return dict(response)

    def _refused(self, context: _Context, credential: Credential, error: Exception) -> SaleResponse:
        refusal = _refusal_in(error, credential)
        if refusal is not None:
            return _final_refusal(refusal) or self.request_payment(context, refusal)
        if isinstance(error, ConflictError) and error.code in ("duplicate-payment", "payment-identifier-conflict"):
            return problem_response(error.code)
        self.report(Fault("verify", error))
        if _is_misconfigured(error):
            return problem_response("payments-misconfigured")
        code = "settlement-unavailable" if _moves_at_verify(credential) else "payments-unavailable"
        return problem_response(code, 5)

    def _begin(self, key: Tuple[str, str, str]) -> bool:
        with self._lock:
            if key in self._running:
                return False
            self._running.add(key)
            return True

    def _end(self, key: Tuple[str, str, str]) -> None:
        with self._lock:
            self._running.discard(key)


# The longest path, in characters. A URL that is sold has at most as many.
_PATH_CHARACTERS_MAX = 2_048


class Routes:
    """Finds the route of a path. ``/research/*`` is everything below ``/research``, itself included."""

    def __init__(self, routes: Mapping[str, Union[Route, str]]) -> None:
        self._exact: Dict[str, Route] = {}
        self._below: Dict[str, Route] = {}
        for pattern, route in routes.items():
            if not pattern.startswith("/"):
                raise ValueError(f"the path of a route is {pattern!r}. Begin it with a slash.")
            if pattern.endswith("/*"):
                self._below[_normal(pattern[:-2])] = route_of(route)
            else:
                self._exact[_normal(pattern)] = route_of(route)
        sold = [*self._exact.values(), *self._below.values()]
        self._is_single = len({id(route) for route in sold}) == 1
        if "/" in self._below:
            # A copy, so that it differs from a named route with the same terms.
            self._below["/"] = copy.copy(self._below["/"])
        self._parts_max = max((place.count("/") for place in self._below), default=0)

    def find(self, *paths: str) -> Union[Route, SaleResponse, None]:
        """
        The route of a path. The path is given whole, and then from each place where the application may be mounted.
        Frameworks differ in how they interpret dots, escapes, slashes, capitals and spaces. If any interpretation
        matches a route, the request must be paid. Two different routes are refused, because they have two prices. A
        named route that matches below the mount replaces a ``/*`` that matches the whole path. A path with ``..`` may
        lead to any file, so it is refused unless there is one route and the path matches it. A long path is refused on
        every route: nothing that is sold has one, and its interpretations would take the event loop's time.
        """
        if len(paths[0]) > _PATH_CHARACTERS_MAX:
            return problem_response("malformed-request")
        known: Optional[Route] = None
        for path in paths:
            found = {id(route): route for route in map(self._exactly, _readings(path)) if route is not None}
            if len(found) > 1:
                return problem_response("malformed-request")
            own = next(iter(found.values()), None)
            if own is None or own is known:
                continue
            if known is not None and known is not self._below.get("/"):
                return problem_response("malformed-request")
            known = own
        if _has_steps(paths[0]) and (known is None or not self._is_single):
            return problem_response("malformed-request")
        return known

    def _exactly(self, own: str) -> Optional[Route]:
        if own in self._exact:
            return self._exact[own]
        parts = own.split("/", self._parts_max + 1)[: self._parts_max + 1]
        while parts:
            place = "/".join(parts) or "/"
            if place in self._below:
                return self._below[place]
            parts.pop()
        return None


# A handler does not receive these with a payment: a 304 is not charged, and its ETag is a digest of the goods.
CONDITIONS = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")


def _has_steps(path: str) -> bool:
    """Whether a path has ``..`` as a part, with escapes decoded once more or not."""
    return ".." in path.split("/") or ".." in unquote(path).split("/")


def _readings(path: str) -> Set[str]:
    """
    The paths that a framework may match: with dot segments resolved or literal, and with escapes decoded again or not.
    ``..`` removes the part before it. Some frameworks remove empty parts and dots first, and others do not.
    """
    readings: Set[str] = set()
    for text in {path, unquote(path)}:
        parts = text.split("/")
        readings.add(_joined_path(parts))
        for skipped in ((), ("",), (".",), ("", ".")):
            readings.add(_stepped([part for part in parts if part not in skipped]))
    return readings


def _normal(path: str) -> str:
    return _stepped(unquote(path).split("/"))


def _stepped(parts: Sequence[str]) -> str:
    kept: List[str] = []
    for part in parts:
        if part == "..":
            del kept[-1:]
        else:
            kept.append(part)
    return _joined_path([part for part in kept if part != "."])


def _joined_path(parts: Sequence[str]) -> str:
    # Routers that match by a regular expression ignore a line break at the end.
    named = [_folded(part.strip()) for part in parts]
    return "/" + "/".join(part for part in named if part != "")


def _folded(part: str) -> str:
    """Equal for texts that are equal without case, also in regular expressions, which take U+0130 and U+0131 for i."""
    return part.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def find_credential(headers: Mapping[str, str]) -> Union[Credential, str]:
    """The payment of a request, ``none``, or ``ambiguous`` if there are several in any headers and protocols."""
    v2, v1 = headers.get("payment-signature", ""), headers.get("x-payment", "")
    mpp = _payments_in(headers.get("authorization")) + _payments_in(headers.get("payment-authorization"))
    sent = _count(v2) + _count(v1) + len(mpp)
    if sent != 1:
        return "none" if sent == 0 else "ambiguous"
    if mpp:
        return Credential("mpp", mpp[0], "Payment-Receipt", "")
    if v2:
        return Credential("x402", v2, "PAYMENT-RESPONSE", _network_of(v2))
    return Credential("x402", v1, "X-PAYMENT-RESPONSE", _network_of(v1))


def problem_response(code: str, retry_after: Optional[float] = None) -> SaleResponse:
    """A problem record (RFC 9457) without details of the paid route."""
    status, title, detail = _PROBLEMS[code]
    headers = [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store")]
    if retry_after is not None:
        headers.append(("Retry-After", str(int(-(-retry_after // 1)))))
    record = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    return SaleResponse(status, headers, json.dumps(record).encode())


# Headers that permit caches of one kind to keep a response, whatever Cache-Control says: targeted fields (RFC 9213), and
# those of CDNs and of nginx.
_TARGETED_CACHING = re.compile(r"(?i)(?:.+-)?cdn-cache-control|surrogate-control|edge-control|x-accel-expires")


def sold_headers(headers: HeaderList, receipt: HeaderList) -> HeaderList:
    """The headers of a sold response: with the receipt, private to its payer, and readable by scripts."""
    names = {name.lower() for name, _ in receipt} | {"cache-control", "access-control-expose-headers"}
    values = {name: _joined(headers, name) for name in ("cache-control", "access-control-expose-headers")}
    kept = [one for one in headers if one[0].lower() not in names and not _TARGETED_CACHING.fullmatch(one[0])]
    caching = [one.strip() for one in values["cache-control"].split(",")]
    directives = [one for one in caching if one and not re.fullmatch(r"(?i)public|private|s-maxage\b.*", one)]
    exposed = [one.strip() for one in values["access-control-expose-headers"].split(",") if one.strip()]
    added = [name for name in _EXPOSED if name.lower() not in {one.lower() for one in exposed}]
    cors = ("Access-Control-Expose-Headers", ", ".join(exposed + added))
    return [*kept, *receipt, ("Cache-Control", ", ".join([*directives, "private"])), cors]


def is_sold(status: int) -> bool:
    """Whether a status is charged. Only 2xx is: "not modified" and redirects deliver nothing."""
    return 200 <= status < 300


def sent_response(response: SaleResponse, method: str) -> SaleResponse:
    """The response with its length, and without a body for HEAD."""
    headers = list(response.headers)
    if response.status != 204:
        headers.append(("Content-Length", str(len(response.body))))
    if response.status == 402:
        headers.append(("Access-Control-Expose-Headers", ", ".join(_EXPOSED)))
    return response._replace(headers=headers, body=b"" if method == "HEAD" else response.body)


def _challenge_response(challenge: Any, refusal: Optional[_Refusal]) -> SaleResponse:
    if not isinstance(challenge, dict) or not isinstance(challenge.get("expiresAt"), str):
        raise UnavailableError("The response is not a challenge.", code="unreadable-answer")
    x402, mpp = challenge.get("x402"), challenge.get("mpp")
    if not x402 and not mpp:
        raise ValueError("The challenge offers no payment that this route accepts.")
    headers = [("Content-Type", "application/json" if x402 else "application/problem+json")]
    headers.append(("Cache-Control", "no-store"))
    body: Dict[str, Any] = dict(challenge.get("x402V1") or {}) if x402 else {}
    error = refusal.reason if refusal is not None and refusal.protocol == "x402" else None
    if x402:
        decoded = None if error is None else _decode(x402)
        headers.append(("PAYMENT-REQUIRED", x402 if decoded is None else _encode({**decoded, "error": error})))
    if error is not None:
        body["error"] = error
    if mpp:
        headers += [("WWW-Authenticate", one) for one in split_challenges(mpp)]
        body.update(_mpp_problem(refusal))
    return SaleResponse(402, headers, _compact(body))


def split_challenges(joined: str) -> List[str]:
    """One value for each challenge. A description may contain text that looks like a challenge, in quotes."""
    found = re.split(r', (?=Payment )(?=(?:[^"\\]|\\.|"(?:[^"\\]|\\.)*")*$)', joined)
    return [one for one in found if one]


def _mpp_problem(refusal: Optional[_Refusal]) -> Dict[str, Any]:
    if refusal is None:
        code, detail = "payment-required", "This resource must be paid for."
    else:
        code = refusal.reason if refusal.reason in _MPP_PROBLEMS else "verification-failed"
        detail = f"The payment was refused: {refusal.reason}."
        detail = detail if refusal.message is None else f"{detail} {refusal.message}"
    status, title = _MPP_PROBLEMS[code]
    return {"type": f"{_PROBLEM_BASE}{code}", "title": title, "status": status, "detail": detail}


def _final_refusal(refusal: _Refusal) -> Optional[SaleResponse]:
    """The response without a new challenge: if another payment cannot help, or if money was already sent."""
    problem = _mpp_problem(refusal)
    if refusal.protocol != "mpp" or (problem["status"] == 402 and not refusal.has_moved):
        return None
    headers = [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store")]
    return SaleResponse(problem["status"], headers, json.dumps(problem).encode())


def _refusal_in(error: Exception, credential: Credential) -> Optional[_Refusal]:
    """Returns why the credential is invalid, or None if the error has another cause."""
    if isinstance(error, PaymentRefusedError):
        message = error.problem.get("message")
        text = message if isinstance(message, str) else None
        return _Refusal(credential.protocol, error.reason, text, _is_push(credential))
    if isinstance(error, ValidationError) and any(one.get("path") == "/credential" for one in error.errors):
        return _Refusal(
            credential.protocol, "malformed-credential" if credential.protocol == "mpp" else "invalid_payload"
        )
    return None


def _is_misconfigured(error: Exception) -> bool:
    return isinstance(error, (AuthenticationError, PermissionDeniedError, ValidationError))


def _payments_in(value: Optional[str]) -> List[str]:
    """The header may contain other schemes, and commas within quoted strings."""
    unquoted = _QUOTED.sub('""', value or "")
    payments = [one.strip() for one in unquoted.split(",") if re.match(r"(?i)payment\s", one.strip())]
    return [re.sub(r"(?i)^payment\s+(?=stub_payment_)", "", one) for one in payments]


def _count(value: str) -> int:
    """Base64 contains no comma, so each comma starts another copy of the header."""
    return len([part for part in value.split(",") if part.strip()])


def _network_of(value: str) -> str:
    payload = _decode(value) or {}
    accepted = payload.get("accepted")
    network = accepted.get("network") if isinstance(accepted, dict) else payload.get("network")
    return network if isinstance(network, str) else "stub"


def _mpp_credential(value: str) -> Dict[str, Any]:
    token = re.sub(r"(?i)^payment\s+", "", value)
    try:
        decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _mpp_challenge(value: str) -> Dict[str, Any]:
    challenge = _mpp_credential(value).get("challenge")
    return challenge if isinstance(challenge, dict) else {}


def _is_push(credential: Credential) -> bool:
    """Whether the payer broadcasts the transaction."""
    payload = _mpp_credential(credential.value).get("payload") if credential.protocol == "mpp" else None
    return isinstance(payload, dict) and payload.get("type") == "hash"


def _moves_at_verify(credential: Credential) -> bool:
    """Whether verification may move money. On Tempo it broadcasts; ``evm/charge`` is settled later."""
    return credential.protocol == "mpp" and _mpp_challenge(credential.value).get("method") != "evm"


def _resource_of(base: str, target: str) -> Optional[str]:
    """The public URL of the route, or None if the address is malformed or longer than the service accepts."""
    url = base + quote(target, safe="%/?=&;:@!$'()*+,~[]")
    if len(url) > 2_048 or not target.startswith("/") or re.search(r"[^\x21-\x7e]|#", target):
        return None
    return url if _BASE.fullmatch(base) else None


def _decode(value: str) -> Optional[Dict[str, Any]]:
    try:
        decoded = json.loads(base64.b64decode(value, validate=True))
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _encode(value: Mapping[str, Any]) -> str:
    return base64.b64encode(_compact(value)).decode()


def _compact(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _joined(headers: HeaderList, name: str) -> str:
    return ", ".join(value for own, value in headers if own.lower() == name)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _log_fault(fault: Fault) -> None:
    payment = "" if fault.payment is None else f" for {fault.payment.get('paymentId')}"
    _LOG.error("%s failed%s: %s: %s", fault.stage, payment, type(fault.error).__name__, fault.error)
