"""Settings of a store whose objects are staged from tape before they are read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from swathe._swathe import StoreKind
from swathe.catalog.store_urls import LONGEST_TEXT, remote_url
from swathe.core.errors import StoreSettingsError
from swathe.core.value_errors import short_text

StagingKind: TypeAlias = Literal["xrootd-prepare", "wlcg-tape-rest", "s3-restore", "command"]
STAGING_KINDS: tuple[StagingKind, ...] = get_args(StagingKind)
RESTORE_TIERS = ("Bulk", "Standard", "Expedited")
STAGING_OPTIONS = (
    "staging",
    "staging_command",
    "staging_endpoint",
    "staging_lifetime",
    "staging_tier",
)
"""In order: how objects are staged, the script of a site, the URL of the staging service, seconds
that an object stays on disk, and the retrieval tier of an S3 archive."""
DEFAULT_LIFETIME_S = 24 * 3600
LEAST_LIFETIME_S, MOST_LIFETIME_S = 60, 365 * 24 * 3600
SCHEMES_OF: dict[str, tuple[str, ...]] = {
    "xrootd-prepare": ("root", "roots"),
    "wlcg-tape-rest": ("http", "https", "dav", "davs", "root", "roots"),
    "s3-restore": ("s3",),
}
"""Schemes of the URLs of the stores that each kind stages; `command` stages any."""
KINDS_OF: dict[str, tuple[str, ...]] = {
    "staging_command": ("command",),
    "staging_endpoint": ("wlcg-tape-rest", "s3-restore"),
    "staging_tier": ("s3-restore",),
}
"""Kinds that an option is for."""


def staging_option(name: str, value: str) -> str:
    """Return an option of staging in standard form.

    Raises:
        StoreSettingsError: If its value is invalid.
    """
    match name:
        case "staging":
            return _choice(name, value, STAGING_KINDS)
        case "staging_tier":
            return _choice(name, value, RESTORE_TIERS)
        case "staging_command":
            if not value.startswith("/") or not value.isprintable() or len(value) > LONGEST_TEXT:
                raise StoreSettingsError(
                    "the option staging_command: expected the absolute path of a program, found "
                    f"{short_text(value)}"
                )
            return os.path.normpath(value)
        case "staging_endpoint":
            try:
                return remote_url(value, ("http", "https"))
            except StoreSettingsError as error:
                raise StoreSettingsError(f"the option {name}: {error}") from None
        case _:
            is_whole = value.isascii() and value.isdigit() and len(value) <= 9
            if not is_whole or not LEAST_LIFETIME_S <= int(value) <= MOST_LIFETIME_S:
                raise StoreSettingsError(
                    f"the option {name}: expected {LEAST_LIFETIME_S} to {MOST_LIFETIME_S} "
                    f"seconds, found {short_text(value)}"
                )
            return str(int(value))


def _choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise StoreSettingsError(
            f"the option {name}: expected {', '.join(choices)}, found {short_text(value)}"
        )
    return value


def check_staging(root: str, tier: str, options: Mapping[str, str]) -> None:
    """Check that the options of staging fit each other, the tier and the root of a store.

    Raises:
        StoreSettingsError: If they do not.
    """
    names = [name for name in options if name in STAGING_OPTIONS]
    if not names:
        return
    kind = options.get("staging")
    if kind is None:
        raise StoreSettingsError(f"the option {names[0]}: expected the option staging too")
    if tier != "tape":
        raise StoreSettingsError(f"the option staging: expected the tier tape, found {tier}")
    schemes = SCHEMES_OF.get(kind)
    scheme = "file" if StoreKind(root).is_local else root.partition("://")[0].lower()
    if schemes is not None and scheme not in schemes:
        raise StoreSettingsError(
            f"staging={kind}: expected a store of {', '.join(schemes)}, found {root}"
        )
    for name, kinds in KINDS_OF.items():
        if name in options and kind not in kinds:
            raise StoreSettingsError(
                f"the option {name}: expected staging={' or '.join(kinds)}, found {kind}"
            )
    if kind == "command" and "staging_command" not in options:
        raise StoreSettingsError("staging=command: expected the option staging_command")
