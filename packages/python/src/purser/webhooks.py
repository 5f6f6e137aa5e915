"""Verification of webhook deliveries."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import re
import time
from email.message import Message
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

# The header mappings of frameworks, and `self.headers` of the standard library's http.server.
Headers = Union[Mapping[str, str], Message, Iterable[Tuple[str, str]]]

_SIGNATURE_LENGTH_MAX = 4_096
_SIGNATURES_MAX = 16

_SENTENCES = {
    "header-missing": "The request does not have the headers of a signed delivery.",
    "header-repeated": "A signing header occurs more than once in the request.",
    "id-malformed": "The message id does not have the format of the service.",
    "timestamp-malformed": "The timestamp is not a whole number of seconds.",
    "timestamp-too-old": "The delivery was signed too long ago, or the local clock is ahead.",
    "timestamp-too-new": "The delivery was signed in the future, or the local clock is behind.",
    "signature-malformed": "The signature header is empty, too long, or contains too many signatures.",
    "signature-mismatch": "No signature matches this body. The secret is wrong, or the body is not the raw body.",
    "body-malformed": "The body is signed but is not JSON.",
    "event-malformed": "The body is signed but is not an event.",
}


class WebhookVerificationError(Exception):
    """The request is not an authentic delivery. Respond with 400 and do nothing else. Branch on ``reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(_SENTENCES[reason])
        self.reason = reason


class WebhookEvent(NamedTuple):
    """An event. It may be delivered more than once, with the same ``event_id``. Respond with 2xx to unknown types."""

    event_id: str
    type: str
    payload: Dict[str, Any]


def unwrap(
    raw_body: Union[bytes, str],
    headers: Headers,
    secret: Union[str, Sequence[str]],
    *,
    tolerance_seconds: float = 300,
    now: Optional[float] = None,
) -> WebhookEvent:
    """
    Verifies that the service sent a webhook request recently, and returns its event. ``raw_body`` is the unparsed body.
    ``secret`` is the webhook's secret (``whsec_…``), or several during a rotation. Uses the Standard Webhooks headers,
    or ``X-Service-Signature`` if those are absent. Raises a :class:`WebhookVerificationError` for anything wrong with
    the request, and a ``ValueError`` or ``TypeError`` for faults of the receiver's program.
    """
    body = _bytes_of(raw_body)
    keys = _keys_of([secret] if isinstance(secret, str) else list(secret))
    at = time.time() if now is None else now
    fault = _fault_of(_Read(headers), body, keys, _Moment(at, tolerance_seconds))
    if fault is not None:
        raise WebhookVerificationError(fault)
    return _event_of(body)


class _Moment(NamedTuple):
    now: float
    tolerance: float


class _Key(NamedTuple):
    text: bytes
    decoded: bytes


class _Read:
    """The headers of a request, by name in any case."""

    def __init__(self, headers: Headers) -> None:
        pairs = headers.items() if isinstance(headers, (Mapping, Message)) else headers
        self._values: Dict[str, List[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name.lower().replace("_", "-"), []).append(value)

    def find(self, name: str) -> Optional[str]:
        values = self._values.get(name, [])
        if len(values) > 1:
            raise WebhookVerificationError("header-repeated")
        return values[0] if values else None

    def needed(self, name: str) -> str:
        value = self.find(name)
        if value is None:
            raise WebhookVerificationError("header-missing")
        return value


def verify_service_signature(
    body: bytes, timestamp: str, signature: str, secrets: Sequence[str], *, now: float, tolerance_seconds: float = 300
) -> Optional[str]:
    """
    Judges ``X-Service-Signature``: HMAC-SHA256 over ``<timestamp>.<body>``, keyed with the text of the secret. Returns
    the fault, or None if one of the signatures is valid.
    """
    return _service_fault(body, timestamp, signature, _keys_of(secrets), _Moment(now, tolerance_seconds))


def verify_standard_signature(
    body: bytes,
    headers: Tuple[str, str, str],
    secrets: Sequence[str],
    *,
    now: float,
    tolerance_seconds: float = 300,
) -> Optional[str]:
    """
    Judges the Standard Webhooks headers (id, timestamp, signature): HMAC-SHA256 over ``<id>.<timestamp>.<body>``, keyed
    with the decoded secret. Returns the fault, or None if one of the ``v1`` signatures is valid.
    """
    return _standard_fault(body, headers, _keys_of(secrets), _Moment(now, tolerance_seconds))


def _fault_of(read: _Read, body: bytes, keys: List[_Key], moment: _Moment) -> Optional[str]:
    signature = read.find("webhook-signature")
    if signature is None:
        timestamp = read.needed("x-service-timestamp")
        return _service_fault(body, timestamp, read.needed("x-service-signature"), keys, moment)
    return _standard_fault(body, (read.needed("webhook-id"), read.needed("webhook-timestamp"), signature), keys, moment)


def _service_fault(
    body: bytes, timestamp: str, signature: str, keys: List[_Key], moment: _Moment
) -> Optional[str]:
    fault = _time_fault(timestamp, moment) or _header_fault(signature, ",")
    if fault is not None:
        return fault
    given = [_service_bytes(part.strip()) for part in signature.split(",")]
    signed = timestamp.encode() + b"." + body
    return _match(given, [hmac.new(key.text, signed, hashlib.sha256).digest() for key in keys])


def _standard_fault(
    body: bytes, headers: Tuple[str, str, str], keys: List[_Key], moment: _Moment
) -> Optional[str]:
    message_id, timestamp, signature = headers
    if re.fullmatch(r"[A-Za-z0-9_-]{1,128}", message_id) is None:
        return "id-malformed"
    fault = _time_fault(timestamp, moment) or _header_fault(signature, " ")
    if fault is not None:
        return fault
    given = [_standard_bytes(part.strip()) for part in signature.split(" ")]
    signed = f"{message_id}.{timestamp}.".encode() + body
    return _match(given, [hmac.new(key.decoded, signed, hashlib.sha256).digest() for key in keys])


def _time_fault(timestamp: str, moment: _Moment) -> Optional[str]:
    if not math.isfinite(moment.now):
        raise ValueError("now is not a number of seconds")
    if not math.isfinite(moment.tolerance) or moment.tolerance < 0:
        raise ValueError("tolerance_seconds is not a number of seconds")
    if re.fullmatch(r"0|[1-9][0-9]{0,11}", timestamp) is None:
        return "timestamp-malformed"
    age = math.floor(moment.now) - int(timestamp)
    if age > moment.tolerance:
        return "timestamp-too-old"
    return "timestamp-too-new" if age < -moment.tolerance else None


def _header_fault(signature: str, separator: str) -> Optional[str]:
    if signature == "" or len(signature) > _SIGNATURE_LENGTH_MAX:
        return "signature-malformed"
    return "signature-malformed" if len(signature.split(separator)) > _SIGNATURES_MAX else None


def _service_bytes(part: str) -> Optional[bytes]:
    found = re.fullmatch(r"sha256=([0-9a-f]{64})", part)
    return bytes.fromhex(found.group(1)) if found else None


def _standard_bytes(part: str) -> Optional[bytes]:
    version, _, text = part.partition(",")
    signature = _decode(text) if version == "v1" else None
    return signature if signature is not None and len(signature) == 32 else None


def _match(given: List[Optional[bytes]], expected: List[bytes]) -> Optional[str]:
    """Compares in constant time, so that a signature cannot be guessed byte by byte."""
    known = [signature for signature in given if signature is not None]
    is_signed = any([hmac.compare_digest(own, signature) for own in expected for signature in known])
    return None if is_signed else "signature-mismatch"


def _keys_of(secrets: Sequence[str]) -> List[_Key]:
    if len(secrets) == 0:
        raise ValueError("a webhook is verified with at least one secret")
    return [_key_of(secret) for secret in secrets]


def _key_of(secret: str) -> _Key:
    decoded = _decode(secret[6:]) if secret.startswith("whsec_") else None
    if decoded is None or not 24 <= len(decoded) <= 64:
        raise ValueError("not a webhook secret: whsec_ and the base64 of 24 to 64 bytes")
    return _Key(secret.encode(), decoded)


def _decode(text: str) -> Optional[bytes]:
    """Canonical base64 only, so that one value has one form."""
    try:
        decoded = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        return None
    return decoded if base64.b64encode(decoded).decode() == text else None


def _bytes_of(raw_body: Union[bytes, str]) -> bytes:
    if isinstance(raw_body, str):
        return raw_body.encode()
    if isinstance(raw_body, (bytes, bytearray, memoryview)):
        return bytes(raw_body)
    raise TypeError("A webhook is verified over its raw body, as text or bytes. Pass it before anything parses it.")


def _event_of(body: bytes) -> WebhookEvent:
    try:
        value = json.loads(body.decode("utf-8"))
    except ValueError:
        raise WebhookVerificationError("body-malformed") from None
    event = value if isinstance(value, dict) else {}
    event_id, kind, payload = event.get("eventId"), event.get("type"), event.get("payload")
    if not (isinstance(event_id, str) and event_id and isinstance(kind, str) and kind and isinstance(payload, dict)):
        raise WebhookVerificationError("event-malformed")
    return WebhookEvent(event_id, kind, payload)
