"""Users and their tokens."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import TokenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.catalog import Scope, Token

FRESH_S = 1.0
"""Time for which a token is cached; a revoked token may work until then."""
MOST_USERS = 10_000


@dataclass(frozen=True)
class User:
    """The user of a request. An `admin` may do everything, and sees the jobs of all users."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        """Return whether the user has this scope."""
        return scope in self.scopes or "admin" in self.scopes

    @property
    def sees(self) -> str | None:
        """Owner of the jobs that the user sees; `None` = all owners."""
        return None if self.may("admin") else self.name


ANONYMOUS = User("anonymous", frozenset({"read", "submit"}))


class Access:
    """Lookup of users by their tokens."""

    def __init__(self, needs_token: bool, find: Callable[[str], Token | None]):
        """Set whether tokens are required, and the function that looks one up."""
        self.needs_token = needs_token
        self._find = find
        self._lock = threading.Lock()
        self._users: dict[str, tuple[float, User]] = {}

    def cached_user(self, token: str | None) -> User | None:
        """Return the user of a cached token, without a query of the database; else None."""
        if not self.needs_token:
            return ANONYMOUS
        with self._lock:
            until, user = self._users.get(token or "", (0.0, ANONYMOUS))
        return user if time.monotonic() < until else None

    def user(self, token: str | None) -> User:
        """Return the user of a token.

        Raises:
            TokenError: If the token is missing, unknown, expired or revoked.
        """
        cached_user = self.cached_user(token)
        if cached_user is not None:
            return cached_user
        if not token:
            raise TokenError(
                "expected a token, found none; send the header Authorization: Bearer TOKEN"
            )
        record = self._find(token)
        if record is None or not record.is_good():
            raise TokenError("the token is unknown, expired or revoked")
        user = User(record.user, frozenset(record.scopes))
        with self._lock:
            if len(self._users) >= MOST_USERS:
                self._users.clear()
            self._users[token] = (time.monotonic() + FRESH_S, user)
        return user
