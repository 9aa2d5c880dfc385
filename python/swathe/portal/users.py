"""Users, and the tokens they are known by."""

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
"""How long a token that was revoked may still be taken."""
REMEMBERED = 10_000


@dataclass(frozen=True)
class User:
    """Who asks. An `admin` may do everything, and sees the jobs of all."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        """Tell whether they may do what needs this scope."""
        return scope in self.scopes or "admin" in self.scopes

    @property
    def sees(self) -> str | None:
        """Whose jobs they see; `None`: everybody's."""
        return None if self.may("admin") else self.name


ANONYMOUS = User("anonymous", frozenset({"read", "submit"}))


class Access:
    """Knows users by their tokens."""

    def __init__(self, required: bool, find: Callable[[str], Token | None]):
        """Take whether tokens are needed, and what looks one up."""
        self.required = required
        self._find = find
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, User]] = {}

    def remembered(self, token: str | None) -> User | None:
        """Give a user without asking the database, if that can be done."""
        if not self.required:
            return ANONYMOUS
        with self._lock:
            until, user = self._known.get(token or "", (0.0, ANONYMOUS))
        return user if time.monotonic() < until else None

    def user(self, token: str | None) -> User:
        """Give the user that a token stands for.

        Raises:
            TokenError: where there is none, or not of use any more.
        """
        found = self.remembered(token)
        if found is not None:
            return found
        if not token:
            raise TokenError("this portal needs a token: Authorization: Bearer TOKEN")
        known = self._find(token)
        if known is None or not known.is_good():
            raise TokenError("the token is not known here, has expired or was revoked")
        user = User(known.user, frozenset(known.scopes))
        with self._lock:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[token] = (time.monotonic() + FRESH_S, user)
        return user
