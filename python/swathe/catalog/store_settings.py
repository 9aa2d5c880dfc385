"""Settings of a store: its name, URL, tier and options.

Credentials are not settings. A value that looks like one is refused, and never repeated in a
message. A store that needs credentials takes them from the environment when it is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, TypeAlias, get_args

from swathe._swathe import StoreKind, store_key
from swathe.catalog.staging_settings import STAGING_OPTIONS, check_staging, staging_option
from swathe.catalog.store_urls import (
    LONGEST_TEXT,
    NAME,
    SCHEMES,
    STRIPE_URL,
    WHERE_CREDENTIALS_GO,
    like_secret_key,
    looks_secret,
    names_secret,
    remote_url,
    root_url,
)
from swathe.core.errors import NoSuchStoreError, StoreSettingsError
from swathe.core.format import KIB, MIB
from swathe.core.store_schemes import CACHE, DATABASE, is_added, scheme_of
from swathe.core.value_errors import short_text

MOST_SERVERS = 32
DEFAULT_PARITY, DEFAULT_BLOCK_BYTES = 1, MIB
LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES = 4 * KIB, 64 * MIB
Tier: TypeAlias = Literal["local", "lan", "wan", "tape"]
TIERS: tuple[Tier, ...] = get_args(Tier)
OPTIONS = (
    "endpoint",
    "region",
    "profile",
    "account",
    "anonymous",
    "door",
    "token_file",
    "probe_object",
    "roots",
    "http2",
    "delegation",
    *STAGING_OPTIONS,
)
"""In order: name of the server, its region, the AWS profile, the Azure account, whether to read
unsigned, the HTTP door of a root:// store, the file with a bearer token, the object that a probe
reads, further folders that links within a folder may lead to, whether requests may share a
connection of HTTP/2, whether servers that copy from it may be sent its token, and how objects are
staged from tape."""
WEBDAV = {"http": "dav", "https": "davs"}
"""Schemes by which web servers can be written to."""
HTTP2 = ("auto", "always", "never")
"""Values of the option http2: over TLS only, also without TLS, not at all."""
ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
OPTION_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
"""Names of options of stores that packages add."""
LOCAL_DATABASE = f"{DATABASE}:sqlite:"
LONGEST_NAME = 100
OVER, STRIPE = "over", "stripe"
"""Key of the servers of a striped store, beside its options, in the catalogue."""


@dataclass(frozen=True)
class Store:
    """A named store.

    Attributes:
        name: letters, digits, `_`, `.` and `-`, starting with a letter; at least two.
        url: its root, without a final slash.
        tier: distance: `local`, `lan`, `wan` or `tape`.
        options: values of its options, such as `region`; of a striped store `parity`,
            `block_bytes`, and `stripe` once that is known.
        over: the servers of a striped store, in order; empty for others.
    """

    name: str
    url: str
    tier: str
    options: dict[str, str] = field(default_factory=dict)
    over: list[StripeServer] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Root under which measurements of the store are filed.

        It is the URL. If an option or the environment of this process names the server, host and
        port of the server come before the path: `s3://127.0.0.1:9000/bucket`.
        """
        return store_key(self.url, self.options)

    @property
    def kind(self) -> StoreKind:
        """What kind of store it is: a folder, a bucket, a server; whether it can be written to."""
        return StoreKind(self.url, [server.store.url for server in self.over])

    @property
    def is_staged(self) -> bool:
        """Whether its objects are on tape, and brought to disk before they are read."""
        return "staging" in self.options

    @property
    def stripe(self) -> str | None:
        """Which stripe a striped store was found to be, as the marks of its servers say it."""
        return self.options.get(STRIPE)

    @property
    def parity(self) -> int:
        """How many parts of an object of a striped store may be lost; 0 for other stores."""
        return int(self.options["parity"]) if self.over else 0

    @property
    def loss_limit(self) -> int:
        """How many servers of a striped store may be lost, so that objects can still be read.

        If more than half are away, the newest version of an object may be on these, whatever the
        parity.
        """
        return min(self.parity, len(self.over) // 2)


@dataclass(frozen=True)
class StripeServer:
    """A place that holds parts of a striped store.

    Attributes:
        place: `NAME:prefix/` of a store, or a URL.
        prefix: its folder in the store; empty for the root.
        store: the store; host and path are its name if the place is a URL.
    """

    place: str
    prefix: str
    store: Store

    @property
    def is_url(self) -> bool:
        """Whether the place is no store of the catalogue, but a URL."""
        return self.place == self.store.url

    @property
    def name(self) -> str:
        """What the engine, records and reports call it: `NAME:prefix/`, or `NAME:` for the root."""
        folder = self.prefix.strip("/")
        return f"{self.store.name}:{folder}/" if folder else f"{self.store.name}:"


def validate_store(
    name: str, url: str, tier: str | None = None, options: Mapping[str, str] | None = None
) -> Store:
    """Return a store from a user's settings; the default tier is `local` for files, else `lan`.

    Raises:
        StoreSettingsError: If a setting is invalid or looks like a credential.
    """
    root = root_url(url)
    for what, scheme_url in (("a striped store", STRIPE_URL), ("a cache", f"{CACHE}:")):
        if root.startswith(scheme_url):
            raise StoreSettingsError(f"{what}: expected the URL {scheme_url}, found {root}")
    if tier is None:
        is_here = StoreKind(root).is_local or root.startswith(LOCAL_DATABASE)
        tier = "local" if is_here else "lan"
    if not isinstance(tier, str) or tier not in TIERS:
        raise StoreSettingsError(f"a tier is one of {', '.join(TIERS)}, not {short_text(tier)}")
    has_own_options = is_added(root) and scheme_of(root) != DATABASE
    options = validate_options({} if options is None else options, has_own_options)
    if "roots" in options and not StoreKind(root).is_local:
        raise StoreSettingsError("the option roots is only for stores that are local folders")
    check_staging(root, tier, options)
    return Store(validate_name(name), root, tier, options)


def validate_stripe(
    name: str,
    tier: str | None,
    options: Mapping[str, str] | None,
    over: Sequence[StripeServer],
    parity: int | None = None,
    block_bytes: int | None = None,
) -> Store:
    """Return a striped store from a user's settings.

    Args:
        name: its name.
        tier: distance; by default the largest of those of its servers.
        options: must be empty: options belong to the stores below.
        over: its servers.
        parity: number of servers that may be lost; by default 1.
        block_bytes: size of a block; by default 1 MiB.

    Raises:
        StoreSettingsError: If a setting is invalid, there are too few or too many servers, or two
            of them are one place.
    """
    if options:
        raise StoreSettingsError(
            f"options of a striped store: expected none, found {', '.join(options)}; give them to "
            "the stores below it"
        )
    parity = DEFAULT_PARITY if parity is None else parity
    block_bytes = DEFAULT_BLOCK_BYTES if block_bytes is None else block_bytes
    if not _is_whole(parity) or not 0 <= parity < MOST_SERVERS:
        raise StoreSettingsError(
            f"parity: expected 0 to {MOST_SERVERS - 1}, found {short_text(parity)}"
        )
    if not 1 + parity <= len(over) <= MOST_SERVERS:
        raise StoreSettingsError(
            f"a striped store with parity {parity}: expected {1 + parity} to {MOST_SERVERS} "
            f"servers, found {len(over)}"
        )
    if (
        not _is_whole(block_bytes)
        or not LEAST_BLOCK_BYTES <= block_bytes <= MOST_BLOCK_BYTES
        or block_bytes % LEAST_BLOCK_BYTES
    ):
        raise StoreSettingsError(
            f"block: expected a multiple of {LEAST_BLOCK_BYTES:,} up to {MOST_BLOCK_BYTES:,} "
            f"bytes, found {short_text(block_bytes)}"
        )
    for one, other in combinations(over, 2):
        if _do_overlap(_location(one), _location(other)):
            raise StoreSettingsError(
                f"a striped store: expected servers apart from each other, found {one.place} and "
                f"{other.place}; one lies in the other"
            )
        if _are_same_folder(one, other):
            raise StoreSettingsError(
                f"a striped store: expected servers apart from each other, found {one.place} and "
                f"{other.place}, which are the same folder"
            )
    tiers = tuple(server.store.tier for server in over)
    if tier is None:
        tier = max(tiers, key=TIERS.index)
    if tier not in TIERS:
        raise StoreSettingsError(f"a tier is one of {', '.join(TIERS)}, not {short_text(tier)}")
    settings = {"parity": str(parity), "block_bytes": str(block_bytes)}
    return Store(validate_name(name), f"{STRIPE_URL}//{name}", tier, settings, list(over))


def _do_overlap(one: str, other: str) -> bool:
    """Return whether a location is in another, or is the same."""
    return one.startswith(other) or other.startswith(one)


def _are_same_folder(one: StripeServer, other: StripeServer) -> bool:
    """Check whether two places are one folder under two names, as by a bind mount."""
    folders = [each.store.kind.local_path for each in (one, other)]
    if folders[0] is None or folders[1] is None:
        return False
    try:
        return os.path.samefile(folders[0] / one.prefix, folders[1] / other.prefix)
    except OSError:  # one does not exist yet
        return False


def check_apart(store: Store, others: Sequence[Store]) -> None:
    """Check that no server of a striped store is within one of another, or the other way.

    Two striped stores may share a place: then objects of one are objects of the other.

    Raises:
        StoreSettingsError: If one is.
    """
    places = [(server.place, _location(server)) for server in store.over]
    for other in others:
        for server in other.over:
            theirs = _location(server)
            for place, ours in places:
                if ours != theirs and _do_overlap(ours, theirs):
                    raise StoreSettingsError(
                        f"a striped store: expected servers apart from those of {other.name!r}, "
                        f"found {place} and {server.place}; one lies in the other"
                    )


def check_apart_places(what: str, one: StripeServer, other: StripeServer) -> None:
    """Check that two places do not lie one in the other.

    Raises:
        StoreSettingsError: If they do.
    """
    if _do_overlap(_location(one), _location(other)):
        raise StoreSettingsError(
            f"{what}: expected places apart from each other, found {one.place} and {other.place}; "
            "one lies in the other"
        )


def find_server(place: str, store_of: Callable[[str], Store]) -> StripeServer:
    """Return the server of a striped store that a user names, as `find_place`.

    Raises:
        NoSuchStoreError: If there is no store of this name.
        StoreSettingsError: If the URL or the prefix is invalid, or the store is striped itself.
    """
    server = find_place(place, store_of)
    if server.store.over or server.store.url.startswith((STRIPE_URL, f"{CACHE}:")):
        raise StoreSettingsError(
            f"a striped store over {place.partition(':')[0]!r}: expected stores that are not "
            "striped themselves, nor caches"
        )
    return server


def store_of_row(
    name: str, url: str, tier: str, options: Mapping[str, Any], find: Callable[[str], Store]
) -> Store:
    """Return a store of the catalogue, with the stores below it as `find` returns them."""
    over = [find_server(place, find) for place in options.get(OVER, ())]
    own_options = {key: value for key, value in options.items() if key != OVER}
    return Store(name, url, tier, own_options, over)


def no_such_store(name: str) -> NoSuchStoreError:
    """Return the error that there is no store of a name."""
    return NoSuchStoreError(f"there is no store {name[:100]!r}; see: swathe store list")


def find_place(place: str, store_of: Callable[[str], Store]) -> StripeServer:
    """Return the place that a user names.

    Args:
        place: `NAME`, `NAME:prefix`, an absolute path or a URL. A web server given by its URL is
            taken for a WebDAV server.
        store_of: function that returns the store of a name.

    Raises:
        NoSuchStoreError: If there is no store of this name.
        StoreSettingsError: If the URL or the prefix is invalid.
    """
    if place.startswith("/") or "://" in place:
        root = root_url(place)
        scheme, _, rest = root.partition("://")
        root = f"{WEBDAV.get(scheme, scheme)}://{rest}"
        tier = "local" if StoreKind(root).is_local else "lan"
        # The engine's name of an object is NAME:path, so its NAME has no colon.
        own_name = root.partition("://")[2].replace(":", "%3A")
        return StripeServer(root, "", Store(own_name, root, tier))
    name, _, prefix = place.partition(":")
    prefix = prefix.rstrip("/")
    if prefix and (
        any(part in ("", ".", "..") for part in prefix.split("/"))
        or not prefix.isprintable()
        or len(prefix) > LONGEST_TEXT
    ):
        raise StoreSettingsError(f"a place in a store: expected NAME:prefix, found {place[:200]!r}")
    store = store_of(name)
    return StripeServer(f"{name}:{prefix}{'/' if prefix else ''}", prefix, store)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _location(server: StripeServer) -> str:
    """Return one text for a place, whichever name it has; it ends in a slash."""
    folder = server.store.kind.local_path
    if folder is not None:
        return f"{os.path.realpath(folder / server.prefix).rstrip('/')}/"
    scheme, _, rest = server.store.key.partition("://")
    return f"{WEBDAV.get(scheme, scheme)}://{rest}/{server.prefix}".rstrip("/") + "/"


def validate_name(name: str) -> str:
    """Return the name of a store if it is valid.

    Raises:
        StoreSettingsError: If it is not, or is a URL scheme.
    """
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise StoreSettingsError(
            f"a store's name is 2 to {LONGEST_NAME} letters, digits, '_', '.' and '-', the first "
            f"a letter (one letter alone would be a drive of Windows in NAME:path); not "
            f"{name[:LONGEST_NAME]!r}"
        )
    if name.lower() in (*SCHEMES, DATABASE, STRIPE_URL.rstrip(":")):
        raise StoreSettingsError(f"{name!r} is a URL scheme and cannot be a store's name")
    return name


def validate_options(options: Mapping[str, str], has_own: bool = False) -> dict[str, str]:
    """Return the options of a store, by name.

    Args:
        options: values by name.
        has_own: whether a package adds this kind of store, which then has options of its own.

    Raises:
        StoreSettingsError: If an option is unknown, invalid or looks like a credential.
    """
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise StoreSettingsError(f"options: expected names and values, found {short_text(options)}")
    return {name: _option(name, options[name], has_own) for name in sorted(options)}


def _option(name: str, value: str, has_own: bool) -> str:
    is_own = has_own and OPTION_NAME.fullmatch(name) and not names_secret(name)
    if name not in OPTIONS and not is_own:
        if names_secret(name) or looks_secret(name):
            raise StoreSettingsError(
                f"an option's name looks like a credential's; {WHERE_CREDENTIALS_GO}"
            )
        raise StoreSettingsError(
            f"an option is one of {', '.join(OPTIONS)}; not {name[:LONGEST_NAME]!r}"
        )
    if looks_secret(value) or (name in ("profile", "region") and like_secret_key(value)):
        raise StoreSettingsError(
            f"the option {name} holds what looks like a credential; {WHERE_CREDENTIALS_GO}"
        )
    if name in STAGING_OPTIONS:
        return staging_option(name, value)
    match name:
        case "account":
            if not ACCOUNT.fullmatch(value):
                raise StoreSettingsError(
                    "the option account is the name of an Azure storage account: 3 to 24 small "
                    "letters and digits"
                )
            return value
        case "anonymous" | "delegation":
            if value.lower() not in ("true", "false"):
                raise StoreSettingsError(f"the option {name} is true or false")
            return value.lower()
        case "http2":
            if value.lower() not in HTTP2:
                raise StoreSettingsError(
                    f"the option http2: expected {', '.join(HTTP2)}, found {short_text(value)}"
                )
            return value.lower()
        case "endpoint" | "door":
            try:
                web = ("http", "https")
                return remote_url(value, web if name == "endpoint" else (*web, "dav", "davs"))
            except StoreSettingsError as error:
                raise StoreSettingsError(f"the option {name}: {error}") from None
        case "token_file":
            if not value.startswith("/") or not value.isprintable() or len(value) > LONGEST_TEXT:
                raise StoreSettingsError(
                    "the option token_file is the absolute path of a file that holds the token"
                )
            return value
        case "probe_object":
            if not value.strip("/") or not value.isprintable() or len(value) > LONGEST_TEXT:
                raise StoreSettingsError("the option probe_object is the path of an object in it")
            return value
        case "roots":
            return _roots(value)
        case _ if is_own:
            if not value.isprintable() or len(value) > LONGEST_TEXT:
                raise StoreSettingsError(
                    f"the option {name}: expected at most {LONGEST_TEXT} printable characters"
                )
            return value
        case _:
            if not re.fullmatch(r"[\w.@+/:-]([\w .@+/:-]{0,126}[\w.@+/:-])?", value):
                raise StoreSettingsError(
                    f"the option {name} is 1 to 128 letters, digits and '_.@+/:-'"
                )
            return value


def _roots(value: str) -> str:
    """Return folders separated by colons, normalised."""
    folders = [os.path.normpath(folder) for folder in value.split(":")]
    if len(value) > LONGEST_TEXT or not value.isprintable():
        raise StoreSettingsError(
            f"the option roots is a list of folders, at most {LONGEST_TEXT} printable characters"
        )
    for folder in folders:
        if not folder.startswith("/"):
            raise StoreSettingsError(
                f"the option roots: expected absolute paths of folders, separated by ':', found "
                f"{folder!r}"
            )
        if not os.path.isdir(folder):
            raise StoreSettingsError(f"the option roots: {folder}: there is no such folder")
    return ":".join(folders)
