"""The staging service of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import OptionError
from swathe.stores.registry import to_native
from swathe.stores.staging.command_stager import CommandStager
from swathe.stores.staging.http_service import HttpService
from swathe.stores.staging.s3_restore import S3Restore
from swathe.stores.staging.stager import Stager
from swathe.stores.staging.tape_rest import TapeRest
from swathe.stores.staging.xrootd_prepare import XrootdPrepare

if TYPE_CHECKING:
    from swathe.catalog.store_settings import Store


def stager_of(store: Store) -> Stager:
    """Return the staging service of a store.

    Raises:
        OptionError: If its objects are not staged, or what is needed for it is not installed.
    """
    options = store.options
    match options.get("staging"):
        case "command":
            return CommandStager(options["staging_command"])
        case "xrootd-prepare":
            return XrootdPrepare(store.url)
        case "s3-restore":
            return S3Restore(store)
        case "wlcg-tape-rest":
            return _tape_rest(store)
        case _:
            raise OptionError(
                f"store {store.name}: expected one whose objects are staged (option staging), "
                "found none"
            )


def _tape_rest(store: Store) -> TapeRest:
    native = to_native([store])
    url = native.http_url(f"{store.name}:")
    if url is None:
        raise OptionError(
            f"store {store.name}: expected a server with HTTP for staging=wlcg-tape-rest: set the "
            "option door"
        )
    token = native.bearer(f"{store.name}:")
    return TapeRest(url, store.options.get("staging_endpoint"), HttpService(token))
