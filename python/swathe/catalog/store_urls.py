"""URLs of stores, normalised, and the check for credentials in them."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote, urlsplit

from swathe._swathe import StoreKind
from swathe.core.errors import StoreSettingsError
from swathe.core.store_schemes import BUILT_IN, CACHE, DATABASE, find_entry_point, scheme_of

STRIPE_URL = "striped:"
"""The URL of a striped store as users write it; the catalogue has `striped://NAME`."""
SCHEMES = BUILT_IN
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]+")
LONGEST_TEXT = 2000
WHERE_CREDENTIALS_GO = (
    "the catalogue keeps no credentials; they go into the environment (AWS_ACCESS_KEY_ID, "
    "GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY and their kin), an AWS profile "
    "(option profile), or a bearer-token file (BEARER_TOKEN_FILE, option token_file)"
)
_SECRET_WORDS = re.compile(
    r"secret|token|passw|pwd|key|credential|signature|auth|bearer|cookie|x-amz-|^(pass|sig|sas|jwt)$"
)
_WORD = re.compile(r"([\w-]+)(?=(\.[\w-]{8})?)")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_HOST = re.compile(r"[A-Za-z0-9$._-]+|\[[0-9A-Fa-f:.]+\]")


def root_url(url: str | os.PathLike[str]) -> str:
    """Return the normalised root of a store: one root, one text.

    Scheme and host are in lower case, without a final slash. An absolute path becomes a file://
    URL.

    Raises:
        StoreSettingsError: If it is not an absolute URL of a known scheme, or contains credentials.
    """
    root = _root_url(os.fspath(url))
    if len(root) > LONGEST_TEXT:
        raise StoreSettingsError(f"a store's URL is at most {LONGEST_TEXT} characters long")
    return root


def _root_url(text: str) -> str:
    if text.startswith("/"):
        return _file_url(text)
    scheme, colon, rest = text.partition("://")
    scheme = scheme.lower()
    if f"{scheme}:" == STRIPE_URL and NAME.fullmatch(rest):
        return f"{STRIPE_URL}//{rest}"
    if scheme == CACHE and NAME.fullmatch(rest):
        return f"{CACHE}://{rest}"
    if scheme_of(text) == DATABASE:
        return _database_url(text)
    if not colon or scheme not in SCHEMES:
        refuse_secrets(text)
        if colon and find_entry_point(scheme) is not None:
            return _added_url(scheme, rest)
        what = f"{scheme[:20]}:// is not a known scheme" if colon else "this is neither"
        raise StoreSettingsError(
            f"a store is given by an absolute path or a URL of one of the schemes "
            f"{', '.join(SCHEMES)}, {DATABASE}:sqlite, {DATABASE}:postgresql; {what}"
        )
    return _file_url_of(text) if scheme == "file" else remote_url(text, SCHEMES)


def _added_url(scheme: str, rest: str) -> str:
    """Return the URL of a store whose scheme a package adds; the package reads the rest."""
    if not rest.strip("/") or not rest.isascii() or _UNPRINTABLE.search(rest) or "?" in rest:
        raise StoreSettingsError(
            f"a {scheme}:// URL: expected a name or path without blanks, '?' and other characters "
            "than ASCII: write them as %XX"
        )
    return f"{scheme}://{rest.rstrip('/')}"


def _database_url(text: str) -> str:
    """Return the URL of a database, normalised."""
    expectation = "a database's URL is db:sqlite:///absolute/path or db:postgresql://user@host/name"
    scheme, _, rest = text.partition(":")[2].partition("://")
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        port = parts.port
    except ValueError:
        raise StoreSettingsError(f"{expectation}; host or port cannot be read") from None
    if parts.password is not None or "@" in parts.path or looks_secret(unquote(rest)):
        raise StoreSettingsError(
            "the URL of a database contains a password; the catalogue keeps none: it goes into "
            "~/.pgpass, PGPASSFILE or PGPASSWORD"
        )
    path = parts.path.strip("/")
    if not path or parts.query or parts.fragment or not rest.isascii() or _UNPRINTABLE.search(rest):
        raise StoreSettingsError(expectation)
    match scheme.lower():
        case "sqlite" if not parts.netloc:
            file = _file_url(unquote(parts.path, errors="surrogateescape"))
            return f"{DATABASE}:sqlite://{file.removeprefix('file://')}"
        case "postgresql" | "postgres" if "/" not in path:
            user = f"{parts.username}@" if parts.username else ""
            host = parts.hostname or ""
            return f"{DATABASE}:postgresql://{user}{host}{f':{port}' if port else ''}/{path}"
        case _:
            raise StoreSettingsError(expectation)


def _file_url_of(text: str) -> str:
    try:
        parts = urlsplit(text)
        host, rest = parts.netloc, parts.query or parts.fragment
    except ValueError:
        host, rest = "?", ""
    if rest or "@" in host:
        refuse_secrets(text)
    if host.lower() not in ("", "localhost") or rest or not parts.path.startswith("/"):
        raise StoreSettingsError("a file:// URL is file:///absolute/path")
    return _file_url(unquote(parts.path, errors="surrogateescape"))


def _file_url(path: str) -> str:
    if "\0" in path:
        raise StoreSettingsError("a store's path holds a null character")
    clean = os.path.normpath(path)
    # POSIX gives two leading slashes a special meaning; here they have none.
    return "file://" + quote("/" + clean.lstrip("/"), errors="surrogateescape")


def remote_url(text: str, schemes: tuple[str, ...]) -> str:
    """Return the URL of a server, normalised, its path without a final slash.

    Raises:
        StoreSettingsError: If its scheme is none of `schemes`, its host is invalid, or it has a
            query, a fragment or credentials.
    """
    refuse_secrets(text)
    if not text.isascii() or _UNPRINTABLE.search(text):
        raise StoreSettingsError(
            "a URL has no blanks, control characters or other than ASCII: write them as %XX"
        )
    scheme = text.partition("://")[0].lower()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise StoreSettingsError(f"the {scheme}:// URL cannot be read: host or port") from None
    if parts.query or parts.fragment or text.endswith(("?", "#")):
        raise StoreSettingsError("a store's URL has no query (?...) and no fragment (#...)")
    host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    if scheme not in schemes or not _HOST.fullmatch(host):
        raise StoreSettingsError(f"a URL is scheme://host/path, scheme one of {', '.join(schemes)}")
    # Bucket names are case sensitive, host names are not.
    host = host if StoreKind(text).is_bucket else host.lower()
    port_text = "" if port is None else f":{port}"
    return f"{scheme}://{host}{port_text}{parts.path.rstrip('/')}"


def refuse_secrets(url: str) -> None:
    """Check for credentials, also in an invalid URL."""
    rest = unquote(url.partition("://")[2] or url)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    raw_authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    if "@" in authority or "@" in raw_authority:
        raise StoreSettingsError(f"the URL contains a user or password; {WHERE_CREDENTIALS_GO}")
    for part in re.split(r"[?&;#]", rest)[1:]:
        name, _, value = part.partition("=")
        if names_secret(name) or looks_secret(value):
            raise StoreSettingsError(
                f"the URL holds what looks like a credential; {WHERE_CREDENTIALS_GO}"
            )
    if any(looks_secret(part) for part in re.split(r"[/@:]", rest)):
        raise StoreSettingsError(
            f"the URL holds what looks like a credential; {WHERE_CREDENTIALS_GO}"
        )


def names_secret(name: str) -> bool:
    """Check for a name of an option or field that has a credential as its value."""
    return bool(_SECRET_WORDS.search(name.lower()))


def looks_secret(text: str) -> bool:
    """Check for access keys of AWS, tokens that name themselves, and tokens of Google."""
    if re.search(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bya29\.[\w-]{16}", text):
        return True
    # A JSON web token is words with dots between; each word is checked once.
    return any(word[2] and re.search(r"\beyJ[\w-]{8}", word[1]) for word in _WORD.finditer(text))


def like_secret_key(text: str) -> bool:
    """Check for AWS secret access keys: 40 characters of base 64, of both cases, with digits."""
    kinds = (r"[A-Z]", r"[a-z]", r"[0-9]")
    return bool(re.fullmatch(r"[A-Za-z0-9/+]{40}", text)) and all(
        re.search(kind, text) for kind in kinds
    )
