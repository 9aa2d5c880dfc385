"""Settings of a store of kind `cache:`, which keeps objects of a slow store on a near one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from swathe.catalog.store_settings import (
    TIERS,
    Store,
    StripeServer,
    check_apart_places,
    find_place,
    validate_name,
)
from swathe.core.errors import StoreSettingsError
from swathe.core.store_schemes import CACHE
from swathe.core.value_errors import short_text

CACHE_URL = f"{CACHE}:"
"""The URL of a cache as users write it; the catalogue has `cache://NAME`."""
WriteMode: TypeAlias = Literal["through", "back"]
WRITE_MODES: tuple[WriteMode, ...] = get_args(WriteMode)
MOST_LIMIT_BYTES = 1 << 62
MOST_CHECK_S = 365 * 24 * 3600.0


@dataclass(frozen=True)
class CacheSettings:
    """What a cache is of, and where it keeps objects.

    Attributes:
        name: its name.
        source: place of the slow store, `NAME:` or `NAME:folder/`.
        near: place of the near store, the same, or a folder with a slash at its end.
        limit_bytes: bytes that it keeps at most.
        write: whether an object is written to the source before it is acknowledged (`through`), or
            later (`back`).
        check_s: seconds for which a source is taken to be unchanged after it was looked at.
    """

    name: str
    source: str
    near: str
    limit_bytes: int
    write: WriteMode
    check_s: float

    @classmethod
    def of(cls, name: str, options: Mapping[str, str]) -> CacheSettings:
        """Return the settings of a store of the catalogue, from its options."""
        write: WriteMode = "back" if options["write"] == "back" else "through"
        limit, check = int(options["limit"]), float(options["check"])
        return cls(name, options["of"], options["near"], limit, write, check)

    @property
    def root(self) -> str:
        """Return its URL."""
        return f"{CACHE_URL}//{self.name}"

    @property
    def options(self) -> dict[str, str]:
        """Return its options, as `of` takes them."""
        return {
            "of": self.source,
            "near": self.near,
            "limit": str(self.limit_bytes),
            "write": self.write,
            "check": f"{self.check_s:g}",
        }

    def source_name(self, path: str) -> str:
        """Return the name of an object in the slow store."""
        return f"{self.source}{path}"

    def near_name(self, token: str, path: str) -> str:
        """Return the name of a copy in the near store."""
        return f"{self.near}{token}/{path}"


def is_cache(store: Store) -> bool:
    """Return whether a store is a cache."""
    return store.url.startswith(f"{CACHE_URL}//")


def validate_cache(
    name: str,
    tier: str | None,
    options: Mapping[str, str] | None,
    *,
    of: str | None,
    near: str,
    limit_bytes: int | None,
    write: str | None,
    check_s: float | None,
    find: Callable[[str], Store],
) -> Store:
    """Return a cache from a user's settings.

    Args:
        name: its name.
        tier: distance; by default that of the near store.
        options: must be empty: options belong to the stores below.
        of: the slow store, `NAME` or `NAME:folder`.
        near: the near store, the same, or an absolute path of a folder.
        limit_bytes: bytes that it keeps at most.
        write: `through` or `back`; by default `through`.
        check_s: seconds for which a source is taken to be unchanged; by default 0.
        find: function that returns the store of a name.

    Raises:
        NoSuchStoreError: If a store does not exist.
        StoreSettingsError: If a setting is invalid, a store is a cache itself, one lies in the
            other, or the near one is a tape or cannot be written.
    """
    if options:
        raise StoreSettingsError(
            f"options of a cache: expected none, found {', '.join(options)}; give them to the "
            "stores below it"
        )
    if of is None:
        raise StoreSettingsError("a cache: expected the store that it is of (--of), found none")
    source, place = _place_of("of", of, find), _place_of("over", near, find)
    check_apart_places("a cache", source, place)
    if place.store.tier == "tape" or not place.store.kind.is_writable:
        raise StoreSettingsError(
            f"over: expected a store that can be written and is no tape, found {near}"
        )
    is_whole = isinstance(limit_bytes, int) and not isinstance(limit_bytes, bool)
    if not is_whole or not 0 < (limit_bytes or 0) <= MOST_LIMIT_BYTES:
        raise StoreSettingsError(
            f"limit: expected bytes that a cache keeps at most, found {short_text(limit_bytes)}"
        )
    if write is not None and write not in WRITE_MODES:
        raise StoreSettingsError(
            f"write: expected {' or '.join(WRITE_MODES)}, found {short_text(write)}"
        )
    if check_s is not None and not 0 <= check_s <= MOST_CHECK_S:
        raise StoreSettingsError(f"check: expected 0 to {MOST_CHECK_S:.0f} s, found {check_s}")
    tier = place.store.tier if tier is None else tier
    if tier not in TIERS:
        raise StoreSettingsError(f"a tier is one of {', '.join(TIERS)}, not {short_text(tier)}")
    settings = CacheSettings(
        validate_name(name),
        source.name,
        f"{place.store.kind.local_path}/" if place.is_url else place.name,
        limit_bytes or 0,
        "back" if write == "back" else "through",
        check_s or 0.0,
    )
    return Store(name, settings.root, tier, settings.options)


def _place_of(option: str, text: str, find: Callable[[str], Store]) -> StripeServer:
    place = find_place(text, find)
    if place.is_url and (option == "of" or place.store.kind.local_path is None):
        or_folder = "" if option == "of" else ", or a folder"
        raise StoreSettingsError(
            f"{option}: expected NAME or NAME:folder of a store{or_folder}, found "
            f"{short_text(text)}; first: swathe store add NAME URL"
        )
    if is_cache(place.store):
        raise StoreSettingsError(f"{option}: expected a store that is no cache, found {text}")
    return place
