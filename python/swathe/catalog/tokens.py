"""Tokens for users of a portal. Only their hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from sqlalchemy import select, update

from swathe.catalog.database import Database
from swathe.catalog.records.checks import plain_text
from swathe.catalog.tables import TokenRow
from swathe.core.errors import TokenError

Scope = Literal["read", "submit", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
USER = re.compile(r"[A-Za-z][A-Za-z0-9_.@+-]{0,99}")
PREFIX = "swathe_"
"""Prefix by which a leaked token can be recognised."""
RANDOM_BYTES = 32


@dataclass(frozen=True)
class Token:
    """Record of a token, without the token itself.

    Attributes:
        number: number, for revoking it.
        user: user it belongs to.
        scopes: what it permits.
        created_at: UTC, as all times.
        expires_at: end of validity; `None`: never.
        revoked_at: time it was revoked; `None`: not revoked.
    """

    number: int
    user: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def is_good(self) -> bool:
        """Check whether it is valid now."""
        is_expired = self.expires_at is not None and self.expires_at <= datetime.now(UTC)
        return self.revoked_at is None and not is_expired


class Tokens(Database):
    """Tokens of users."""

    def add_token(
        self, user: str, scopes: Collection[str], expires_at: datetime | None = None
    ) -> tuple[str, Token]:
        """Create a token. The secret is returned here and never again.

        Raises:
            TokenError: If the user's name is invalid, or a scope is unknown.
        """
        if not USER.fullmatch(user) or user == "anonymous":
            raise TokenError(
                "a user's name is 1 to 100 letters, digits and '_.@+-', from a letter on, but not "
                f"'anonymous'; not {user[:100]!r}"
            )
        unknown = set(scopes) - set(SCOPES)
        if unknown or not scopes:
            names = ", ".join(map(repr, sorted(unknown))) or "none"
            raise TokenError(f"scopes are {', '.join(SCOPES)}; found {names}")
        token = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
        row = TokenRow(
            user=user,
            label="",
            hash=_hash(token),
            scopes=[scope for scope in SCOPES if scope in scopes],
            created_at=datetime.now(UTC),
            expires_at=expires_at,
        )
        with self._writing() as session:
            session.add(row)
            session.flush()
            return token, _token(row)

    def token(self, secret: str) -> Token | None:
        """Return the record of a token; `None` if it is unknown."""
        secret_hash = _hash(secret)
        with self._reading() as session:
            row = session.scalar(select(TokenRow).where(TokenRow.hash == secret_hash))
            if row is None or not hmac.compare_digest(row.hash, secret_hash):
                return None
            return _token(row)

    def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""
        with self._reading() as session:
            return [_token(row) for row in session.scalars(select(TokenRow).order_by(TokenRow.id))]

    def revoke_tokens(self, which: str) -> list[Token]:
        """Revoke the token of a number, or all of a user; return those that were valid.

        Raises:
            TokenError: If there is no such token.
        """
        condition = TokenRow.user == plain_text(which, 200)
        if which.isascii() and which.isdecimal() and len(which) < 19:
            condition |= TokenRow.id == int(which)
        with self._writing() as session:
            rows = list(session.scalars(select(TokenRow).where(condition).order_by(TokenRow.id)))
            if not rows:
                raise TokenError(
                    f"there is no token or user {which[:100]!r}; see: swathe portal token list"
                )
            valid = [_token(row) for row in rows if row.revoked_at is None]
            session.execute(
                update(TokenRow)
                .where(TokenRow.id.in_([token.number for token in valid]))
                .values(revoked_at=datetime.now(UTC))
            )
            return valid


def _hash(token: str) -> str:
    # A fast hash is enough: nobody can guess 256 random bits.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: TokenRow) -> Token:
    times = (row.created_at, row.expires_at, row.revoked_at)
    return Token(row.id, row.user, tuple(row.scopes), *times)
