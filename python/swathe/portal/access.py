"""Access control: dependencies of handlers, as `user: Reader`.

A token is sent as `Authorization: Bearer TOKEN`. Browsers cannot send this header for pictures and
downloads, so they may store the token in a cookie. If no token is required, every user is
`anonymous`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends
from fastapi.concurrency import run_in_threadpool

# FastAPI reads the types of parameters at run time.
from starlette.requests import HTTPConnection

from swathe.catalog import Scope
from swathe.core.errors import AccessError
from swathe.portal.context import portal_of
from swathe.portal.http.connections import network_of
from swathe.portal.http.long_responses import VisitorStreams
from swathe.portal.users import User

COOKIE = "swathe-token"
HOST_COOKIE = "__Host-swathe-token"
"""Cookie name with TLS: browsers accept it from this host only, and send it to no other host."""


def cookie_of(connection: HTTPConnection) -> str:
    """Return the name of the cookie that stores the token."""
    secure = portal_of(connection).url(connection).startswith("https://")
    return HOST_COOKIE if secure else COOKIE


def token_of(connection: HTTPConnection) -> str | None:
    """Return the token of a request, or None."""
    kind, _, token = connection.headers.get("authorization", "").partition(" ")
    if kind:
        return token.strip() if kind.lower() == "bearer" else None
    return connection.cookies.get(cookie_of(connection))


def needs(scope: Scope) -> Callable[[HTTPConnection], Awaitable[User]]:
    """Return a dependency that admits users with this scope.

    It raises TokenError (401) if the user is unknown, AccessError (403) if the scope is missing.
    """

    async def user_with_scope(connection: HTTPConnection) -> User:
        access, token = portal_of(connection).access, token_of(connection)
        user = access.cached_user(token)
        if user is None:
            user = await run_in_threadpool(access.user, token)
        if not user.may(scope):
            raise AccessError(
                f"{user.name}: expected a token with the scope {scope!r}, found one without it"
            )
        return user

    return user_with_scope


def visitor_of(connection: HTTPConnection) -> str:
    """Return the visitor whose share a request uses: a user known by a token, else an address."""
    access = portal_of(connection).access
    user = access.cached_user(token_of(connection)) if access.needs_token else None
    if user is not None:
        return f"user {user.name}"
    return f"address {network_of(connection.client.host) if connection.client else ''}"


def streams_of(connection: HTTPConnection) -> VisitorStreams:
    """Return this visitor's slots for responses that wait."""
    return portal_of(connection).streams.of(visitor_of(connection))


def downloads_of(connection: HTTPConnection) -> VisitorStreams:
    """Return this visitor's slots for files and archives."""
    return portal_of(connection).downloads.of(visitor_of(connection))


Reader = Annotated[User, Depends(needs("read"))]
Submitter = Annotated[User, Depends(needs("submit"))]
