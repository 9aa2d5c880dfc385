"""All checks, in the order in which they are best read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.catalog import Catalog
from swathe.core.errors import SettingsError, SwatheError
from swathe.portal.config import read_config
from swathe.portal.doctor import catalogue, machine, pool
from swathe.portal.doctor.check import Check
from swathe.portal.doctor.stores import check_stores

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swathe.portal.config import Config


def examine(path: Path | None) -> Iterator[Check]:
    """Yield the checks of the portal of a settings file, or of the defaults.

    The catalogue is neither made nor migrated. In the store of results an object is written and
    removed, as when the portal starts.
    """
    try:
        config = read_config(path)
    except SettingsError as error:
        why = "; ".join(str(error).splitlines())
        yield Check("settings", "FAIL", why, "mend the settings: the portal does not start")
        return
    yield _settings(config, path)
    yield machine.address(config)
    database = catalogue.database(config)
    yield database
    yield from machine.clocks(catalogue.server_offset_s(config))
    if database.state != "FAIL" and catalogue.is_readable(config):
        try:
            with Catalog.open(config.catalog.database) as catalog:
                yield machine.results(config, catalog)
                yield from check_stores(catalog.stores())
        except SwatheError as error:
            yield Check("stores", "FAIL", str(error), "see the check of the database")
    else:
        yield machine.results(config, None)
    yield pool.certificates(config)
    yield machine.sandbox(config)
    yield pool.workers(config)


def _settings(config: Config, path: Path | None) -> Check:
    """Check what the settings allow that is rarely meant."""
    server, access = config.server, config.access
    source = str(path) if path is not None else "defaults"
    if config.workers.insecure:
        return Check(
            "settings",
            "WARN",
            f"{source}: workers.insecure: who reaches the scheduler can run code as the portal",
            "make certificates with `swathe pool init DIR`, and set workers.certificates",
        )
    if access.open:
        return Check(
            "settings",
            "WARN",
            f"{source}: access.open: everybody who reaches the portal may submit jobs",
            "set access.tokens = 'required', unless this is meant",
        )
    if server.url.startswith("http://"):
        return Check(
            "settings",
            "WARN",
            f"{source}: server.url {server.url}: tokens are sent without encryption",
            "put a proxy with TLS before the portal, as deploy/nginx.conf",
        )
    return Check("settings", "OK", f"{source}: valid")
