"""The errors of the client. Each is a :class:`PurserError`; branch on ``code`` or on the class."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Type


class PurserError(Exception):
    """Anything but a success: what the problem record (RFC 9457) of the response says, or why there is no response."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: Optional[int] = None,
        problem: Optional[Mapping[str, Any]] = None,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
        idempotency_key: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        """The last part of the problem's type, such as ``wallet-not-found``. Messages may change, codes do not."""
        self.status = status
        """The HTTP status. None if there was no response."""
        self.problem: Dict[str, Any] = dict(problem or {})
        """All members of the problem record."""
        self.request_id = request_id
        """Identifies the request in the log of the service. Include it when you contact support."""
        self.retry_after = retry_after
        """Seconds to wait, as the response says."""
        self.idempotency_key = idempotency_key
        """The Idempotency-Key that was sent, yours or a generated one. None if the request carried none."""
        self.is_outcome_known: bool = _is_decided(status, code, problem)
        """
        Whether the service refused the request for certain. If false, the request may have taken effect: repeat it with
        the same ``idempotency_key``, because with another key it can take effect twice.
        """

    @property
    def title(self) -> Optional[str]:
        return _text(self.problem.get("title"))

    @property
    def detail(self) -> Optional[str]:
        return _text(self.problem.get("detail"))

    @property
    def reason(self) -> str:
        """The payment protocol's own code of a refusal, otherwise the code."""
        return _text(self.problem.get("reason")) or self.code

    @property
    def errors(self) -> List[Dict[str, str]]:
        """All faults of the request: ``path`` is a JSON Pointer, ``message`` says what is wrong there."""
        faults = self.problem.get("errors")
        return [fault for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else []


class AuthenticationError(PurserError):
    """401: the API key is missing, invalid or revoked."""


class PermissionDeniedError(PurserError):
    """403: the caller is known and may not do this. ``code`` says why, such as ``policy-denied`` or ``scope-not-allowed``."""


class ValidationError(PurserError):
    """400, 413, 415 or 422: the request is invalid. ``errors`` has all its faults."""


class PaymentRefusedError(PurserError):
    """402: a payment was refused. ``reason`` says why."""


class NotFoundError(PurserError):
    """404: the object does not exist in this organisation and environment."""


class ConflictError(PurserError):
    """409: the object already exists, or its state does not allow this."""


class RateLimitError(PurserError):
    """429 ``rate-limit-exceeded``: too many requests. Retry later."""


class LimitError(PurserError):
    """429 with a quota: the allowance of the plan is used up. Retrying soon does not help."""


class UnavailableError(PurserError):
    """5xx, or a response that is not from the service. The outcome is unknown."""


class ConnectionFailedError(PurserError):
    """No response: refused, reset or timed out. The outcome is unknown."""


def error_of(
    status: int, problem: Optional[Mapping[str, Any]], request_id: Optional[str], retry_after: Optional[float]
) -> PurserError:
    """The error for a response that is not a success."""
    code = str(problem["type"]).rsplit("/", 1)[-1] if problem else f"http-{status}"
    message = _message(problem) if problem else f"The response has status {status} and is not one of Purser. Check base_url."
    return _kind(status, code)(
        message, code=code, status=status, problem=problem, request_id=request_id, retry_after=retry_after
    )


_SHOWN_FAULTS_MAX = 3
_FAULT_LENGTH_MAX = 200


def _message(problem: Mapping[str, Any]) -> str:
    """The problem's sentence and its first faults: a log often has nothing but the message."""
    detail = str(problem.get("detail") or problem["title"])
    errors = problem.get("errors")
    faults = [fault for fault in errors if isinstance(fault, dict)] if isinstance(errors, list) else []
    if not faults:
        return detail
    texts = [f"{fault.get('path')}: {fault.get('message')}" for fault in faults[:_SHOWN_FAULTS_MAX]]
    shown = [text[:_FAULT_LENGTH_MAX] + "…" if len(text) > _FAULT_LENGTH_MAX else text for text in texts]
    others = [f"and {len(faults) - _SHOWN_FAULTS_MAX} more"] if len(faults) > _SHOWN_FAULTS_MAX else []
    return f"{detail} {'; '.join(shown + others)}"


def is_quota(code: str) -> bool:
    """Whether a 429 means that a quota is used up."""
    return code not in ("rate-limit-exceeded", "http-429")


def _kind(status: int, code: str) -> Type[PurserError]:
    if status == 429:
        return LimitError if is_quota(code) else RateLimitError
    if status >= 500 or status < 400:
        return UnavailableError
    return _KINDS.get(status, PurserError)


_KINDS: Dict[int, Type[PurserError]] = {
    400: ValidationError,
    401: AuthenticationError,
    402: PaymentRefusedError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: ValidationError,
    415: ValidationError,
    422: ValidationError,
}


def after_lost(error: PurserError) -> None:
    """
    Marks an error that followed an attempt without an outcome. The service refuses with 401, 403 and
    ``rate-limit-exceeded`` before it looks at the Idempotency-Key, so they decide nothing about that attempt.
    """
    if error.status in (401, 403) or error.code == "rate-limit-exceeded":
        error.is_outcome_known = False


def _is_decided(status: Optional[int], code: str, problem: Optional[Mapping[str, Any]]) -> bool:
    if status is None or not 400 <= status < 500 or not problem:
        return False
    return status != 408 and code != "idempotency-in-progress"


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None
