"""Refuse requests before their content is looked at: size, host, token, number at a time."""

from __future__ import annotations

import hmac
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nlpcapsule.service.problems import problem_response
from nlpcapsule.service.settings import ServiceSettings

# Everything on the page comes from the service itself; no script or style is inline.
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_ALWAYS_ANSWERED = ("/healthz", "/readyz", "/metrics")  # also when the service is busy

Observe = Callable[[Scope, int, float, str], None]


class Guard:
    """ASGI middleware around the whole application.

    Args:
        app: The application.
        settings: The limits.
        observe: Called after each request with its scope, status, seconds and identifier.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings, observe: Observe) -> None:
        self.app, self.settings, self.observe = app, settings, observe
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, identifier, statuses = time.perf_counter(), uuid.uuid4().hex, [0]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses[0] = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = identifier
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                if scope["path"].startswith("/v1/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        self._running += 1
        try:
            await self._guarded(scope, receive, send_with_headers)
        finally:
            self._running -= 1
            self.observe(scope, statuses[0], time.perf_counter() - started, identifier)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await problem_response(*refusal[:2], headers=refusal[2])(scope, receive, send)
            return
        with suppress(ClientDisconnect):  # there is no one to answer
            await self.app(scope, self._limited(receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str, dict[str, str] | None] | None:
        """Return status, message and headers of a refusal; None lets the request pass."""
        settings, path = self.settings, scope["path"]
        hosts = settings.allowed_hosts
        if hosts and _host(headers.get("host", "")) not in hosts:
            told = "this service is not called that; start it with --allow-host to add a name"
            return HTTPStatus.MISDIRECTED_REQUEST, told, None
        needs_token = path.startswith("/v1/") or path == "/metrics"
        if settings.token is not None and needs_token and not _has_token(headers, settings.token):
            told = "send the service's token: Authorization: Bearer TOKEN"
            return HTTPStatus.UNAUTHORIZED, told, {"WWW-Authenticate": "Bearer"}
        if self._running > settings.most_requests and path not in _ALWAYS_ANSWERED:
            told = f"the service has {settings.most_requests} requests to answer; try again in a second"
            return HTTPStatus.TOO_MANY_REQUESTS, told, {"Retry-After": "1"}
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            return HTTPStatus.BAD_REQUEST, "Content-Length is not a number", None
        if int(length[:20]) > settings.most_body_bytes:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._most_bytes, None
        return None

    @property
    def _most_bytes(self) -> str:
        return f"the body is larger than {self.settings.most_body_bytes:,} bytes; send fewer or shorter texts"

    def _limited(self, receive: Receive) -> Receive:
        """Return a `receive` that raises an error once a body is too large, whatever its headers said."""
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.settings.most_body_bytes:
                # FastAPI passes on this class alone; the rest of the body is not read.
                status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                raise HTTPException(status, self._most_bytes, {"Connection": "close"})
            return message

        return counted


def _host(header: str) -> str:
    """Return the name in a Host header, without its port."""
    return header.rsplit("]", 1)[0].lstrip("[") if header.startswith("[") else header.partition(":")[0]


def _has_token(headers: Headers, token: str) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
