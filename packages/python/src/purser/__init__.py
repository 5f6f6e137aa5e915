"""Purser for Python: the client, webhook verification, and paid routes for WSGI and ASGI."""

from .client import Purser
from .connections import Connections, HttpRequest, HttpxConnections, Response, StandardConnections, Streamed
from .errors import (
    AuthenticationError,
    ConflictError,
    ConnectionFailedError,
    LimitError,
    NotFoundError,
    PaymentRefusedError,
    PermissionDeniedError,
    PurserError,
    RateLimitError,
    UnavailableError,
    ValidationError,
)
from .transport import OMITTED, File, Listing, Omitted, Page, Retry, StreamEvent

__version__ = "0.1.0"

__all__ = [
    "OMITTED",
    "AuthenticationError",
    "ConflictError",
    "ConnectionFailedError",
    "Connections",
    "File",
    "HttpRequest",
    "HttpxConnections",
    "LimitError",
    "Listing",
    "NotFoundError",
    "Omitted",
    "Page",
    "PaymentRefusedError",
    "PermissionDeniedError",
    "Purser",
    "PurserError",
    "RateLimitError",
    "Response",
    "Retry",
    "StandardConnections",
    "StreamEvent",
    "Streamed",
    "UnavailableError",
    "ValidationError",
]
