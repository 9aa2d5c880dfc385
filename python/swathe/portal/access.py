"""Who may do what: dependencies of handlers, as `user: Reader`.

A token is sent as `Authorization: Bearer TOKEN`; browsers, which cannot do that for pictures and
downloads, may keep it in a cookie instead. Where no token is needed, everybody is `anonymous`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends
from fastapi.concurrency import run_in_threadpool

# FastAPI looks at the types of parameters when it runs.
from starlette.requests import HTTPConnection

from swathe.catalog import Scope
from swathe.core.errors import AccessError
from swathe.portal.context import portal_of
from swathe.portal.http.connections import network_of
from swathe.portal.http.long_responses import Seats
from swathe.portal.users import User

COOKIE = "swathe-token"
HOST_COOKIE = "__Host-swathe-token"
"""By TLS: browsers take it from this host only, and send it to no other."""


def cookie_of(connection: HTTPConnection) -> str:
    """Return the name of the cookie that keeps a token."""
    secure = portal_of(connection).url(connection).startswith("https://")
    return HOST_COOKIE if secure else COOKIE


def token_of(connection: HTTPConnection) -> str | None:
    """Give the token that a request carries."""
    kind, _, token = connection.headers.get("authorization", "").partition(" ")
    if kind:
        return token.strip() if kind.lower() == "bearer" else None
    return connection.cookies.get(cookie_of(connection))


def needs(scope: Scope) -> Callable[[HTTPConnection], Awaitable[User]]:
    """Give a dependency that lets users with this scope pass.

    It raises TokenError (401) where nobody is known, AccessError (403) where they may not.
    """

    async def user_with_scope(connection: HTTPConnection) -> User:
        access, token = portal_of(connection).access, token_of(connection)
        user = access.remembered(token)
        if user is None:
            user = await run_in_threadpool(access.user, token)
        if not user.may(scope):
            raise AccessError(f"{user.name} has no token with the scope {scope!r}, needed for this")
        return user

    return user_with_scope


def visitor_of(connection: HTTPConnection) -> str:
    """Return whose share a request takes: a user known by a token, else an address."""
    access = portal_of(connection).access
    user = access.remembered(token_of(connection)) if access.required else None
    if user is not None:
        return f"user {user.name}"
    return f"address {network_of(connection.client.host) if connection.client else ''}"


def streams_of(connection: HTTPConnection) -> Seats:
    """Return the places for answers that wait, as whoever asks has them."""
    return portal_of(connection).streams.of(visitor_of(connection))


def downloads_of(connection: HTTPConnection) -> Seats:
    """Return the places for files and archives, as whoever asks has them."""
    return portal_of(connection).downloads.of(visitor_of(connection))


Reader = Annotated[User, Depends(needs("read"))]
Submitter = Annotated[User, Depends(needs("submit"))]
