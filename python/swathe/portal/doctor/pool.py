"""Checks of the pool of workers and its certificates."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from swathe.core.errors import SettingsError
from swathe.core.host import cores
from swathe.portal.doctor.check import Check
from swathe.workers.dask.certificates import AUTHORITY
from swathe.workers.dask.tls import certificate_folder, last_days, read_address

if TYPE_CHECKING:
    from pathlib import Path

    from swathe.portal.config import Config

SOON = timedelta(days=30)
CONNECT_S = 10.0


def certificates(config: Config) -> Check:
    """Check that the certificates of the pool are valid, and private."""
    folder = _folder(config)
    if folder is None:
        return Check("certificates", "OK", "none are used")
    if not folder.exists() and config.workers.certificates is None:
        return Check("certificates", "OK", f"{folder}: made when the pool starts")
    renew = "make new ones with `swathe pool init DIR`, and copy them to scheduler and workers"
    try:
        ends = last_days(folder)
    except SettingsError as error:
        return Check("certificates", "FAIL", str(error), renew)
    except ImportError as error:
        return Check("certificates", "FAIL", str(error), "run: pip install 'swathe[cluster]'")
    if f"{AUTHORITY}.pem" not in ends:
        return Check(
            "certificates", "FAIL", f"{folder}: expected {AUTHORITY}.pem, found none", renew
        )
    name, end = min(ends.items(), key=lambda each: each[1])
    text = f"{folder}: valid until {end:%Y-%m-%d} ({name})"
    if end - datetime.now(UTC) < SOON:
        return Check("certificates", "WARN", text, renew)
    return Check("certificates", "OK", text)


def workers(config: Config) -> Check:
    """Check that the scheduler of the pool answers."""
    settings = config.workers
    if not settings.url:
        threads = config.limits.threads or cores()
        return Check("pool", "OK", f"jobs run in the portal's process, with {threads} threads")
    place = read_address(settings.url)
    remedy = f"start `swathe pool scheduler` on {place.host}, or see workers.url"
    try:
        with socket.create_connection((place.host, place.port), CONNECT_S) as connection:
            folder = _folder(config)
            if folder is not None:
                _tls(folder).wrap_socket(connection).close()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        return Check("pool", "FAIL", f"{place}: {error}", remedy)
    return Check("pool", "OK", f"{place}: a scheduler answers")


def _folder(config: Config) -> Path | None:
    """Return the folder of the certificates of the pool; `None` if none are used."""
    settings = config.workers
    if not settings.url:
        return None
    address = read_address(settings.url)
    return certificate_folder(address, settings.certificates, insecure=settings.insecure)


def _tls(folder: Path) -> ssl.SSLContext:
    """Return what the portal identifies itself with at the scheduler."""
    context = ssl.create_default_context(cafile=folder / f"{AUTHORITY}.pem")
    context.check_hostname = False  # members are known by their authority, not by their names
    context.load_cert_chain(folder / "portal.pem", folder / "portal.key")
    return context
