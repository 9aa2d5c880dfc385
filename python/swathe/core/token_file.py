"""Files that hold a token, a secret that clients send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path


def read_token(path: Path, option: str) -> str:
    """Return the token in a file; `option`: name of the option that messages show.

    Raises:
        SettingsError: If the file cannot be read or holds no token. The message has no part of it.
    """
    try:
        token = path.read_text().strip()
    except UnicodeDecodeError:
        token = ""
    except OSError as error:
        raise SettingsError(f"{option}: {path}: {error.strerror}") from error
    if not (token.isascii() and token.isprintable() and 8 <= len(token) <= 1000) or " " in token:
        raise SettingsError(
            f"{option}: {path}: expected 8 to 1000 ASCII characters without spaces"
        ) from None
    return token
