"""The client of the service."""

from __future__ import annotations

import re
from typing import Any, Optional
from urllib.parse import urlsplit

from .connections import Connections, StandardConnections
from .operations import Operations
from .transport import OMITTED, Retry, Transport


class Purser(Operations):
    """
    A client of the service with one method for each operation, named by its id: ``purser.payments.verify(...)``. All
    attempts of a POST carry one Idempotency-Key, so a lost response cannot move money twice. Anything but a success is
    raised as a :class:`PurserError`. ``timeout`` is that of each attempt, in seconds. Default: 30; 75 for a payment from a
    managed wallet and for a transfer. Safe for several threads, and in a process that was forked.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str,
        *,
        timeout: Optional[float] = None,
        retry: Retry = Retry(),
        connections: Optional[Connections] = None,
        allow_insecure: bool = False,
    ) -> None:
        if not re.fullmatch(r"[\x21-\x7e]+", api_key):
            raise ValueError("api_key is empty, or contains white space or control characters. Give the whole key.")
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.username is not None:
            raise ValueError(f"base_url must be an http(s) URL, such as https://api.example.com: {base_url!r}")
        is_local = re.fullmatch(r"(.+\.)?localhost|127(\.[0-9]+){3}|::1", parts.hostname or "") is not None
        if parts.scheme == "http" and not is_local and not allow_insecure:
            raise ValueError(
                f"base_url is {base_url!r}. The API key would be sent in the clear. Give an https URL, or http on this "
                "machine; or set allow_insecure."
            )
        self._connections = connections or StandardConnections()
        address = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        settings = {"connections": self._connections, "timeout": timeout, "retry": retry}
        super().__init__(Transport(address, api_key, **settings))  # type: ignore[arg-type]

    def with_retry(self, retry: Retry, timeout: float) -> "Operations":
        """The operations over the same connections, with other patience."""
        return Operations(self._transport.with_retry(retry, timeout))

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Any = None,
        body: Any = OMITTED,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Calls any operation, also one that this version has no method for."""
        settings = {"idempotency_key": idempotency_key, "timeout": timeout}
        return self._transport.request(method, path, query=query, body=body, **settings)  # type: ignore[arg-type]

    def close(self) -> None:
        """Closes the idle connections."""
        self._connections.close()

    def __enter__(self) -> "Purser":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
