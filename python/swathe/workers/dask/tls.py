"""Access to a pool: addresses, and the certificates of all members.

Scheduler, workers and portal identify each other by certificates of one authority. On loopback the
first of them creates these in a folder that only its user can read. For other addresses use `swathe
pool init`. A user with a key of a pool can run code on all its workers.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from swathe.core.errors import OutputError, SettingsError
from swathe.core.host import in_url, is_loopback
from swathe.core.paths import state_folder
from swathe.core.value_errors import short_text
from swathe.workers.dask.certificates import AUTHORITY, Role, make_certificates

if TYPE_CHECKING:
    from distributed.security import Security

ADDRESS = re.compile(r"(?:(dask|tcp|tls)://)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})/?")
INIT = "swathe pool init DIR"
ROOT = 0
"""The user who can read and write everything anyway."""


@dataclass(frozen=True)
class Address:
    """Address of a scheduler; TLS is required (`tls`), refused (`tcp`) or optional."""

    scheme: Literal["dask", "tcp", "tls"]
    host: str
    port: int

    def __str__(self) -> str:
        """Return it as text."""
        return f"{self.scheme}://{in_url(self.host)}:{self.port}"

    def url(self, security: Security | None) -> str:
        """Return the URL for Dask."""
        return f"{protocol(security)}://{in_url(self.host)}:{self.port}"


def read_address(text: str) -> Address:
    """Parse `dask://HOST:PORT`, or the same with tcp:// or tls://.

    Raises:
        SettingsError: If it is not an address.
    """
    match = ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match[3]) < 65536:
        raise SettingsError(
            f"expected the address of a scheduler, dask://HOST:PORT, found {short_text(text)}"
        )
    return Address(match[1] or "dask", match[2].strip("[]"), int(match[3]))  # type: ignore[arg-type]  # the pattern has no other


def protocol(security: Security | None) -> str:
    """Return Dask's name for connections with or without certificates."""
    return "tcp" if security is None else "tls"


def certificate_folder(
    address: Address, certificates: Path | None, *, insecure: bool = False
) -> Path | None:
    """Return the folder whose certificates are used at an address; `None` if none are.

    Args:
        address: address of the scheduler.
        certificates: folder named by the user, if any.
        insecure: whether the user typed --insecure.

    Raises:
        SettingsError: If the three do not fit together.
    """
    if insecure:
        if certificates is not None or address.scheme == "tls":
            raise SettingsError(
                f"{address}: expected certificates or --insecure, found both; leave one out"
            )
        return None
    if address.scheme == "tcp":
        raise SettingsError(
            f"{address}: tcp:// uses no certificates, and without them anyone who reaches "
            "the address can run code; write dask://, or type --insecure"
        )
    if certificates is not None:
        return certificates
    if not is_loopback(address.host):
        raise SettingsError(
            f"{address}: beyond loopback, a pool needs certificates: create them with "
            f"`{INIT}`, and give --certificates DIR"
        )
    return state_folder() / "pools" / f"loopback-{address.port}"


def last_days(folder: Path) -> dict[str, datetime]:
    """Return when each certificate in a folder ends, by the name of its file.

    Raises:
        SettingsError: If the folder or a certificate cannot be read, is not one, or others may
            change it.
    """
    from cryptography import x509

    _check_folder(folder)
    ends = {}
    for path in sorted(folder.glob("*.pem")):
        _check(path)
        ends[path.name] = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    return ends


def insecure_warning(address: Address) -> str:
    """Return the warning for a pool without certificates."""
    who = "every user of this machine" if is_loopback(address.host) else "WHOEVER REACHES IT"
    return f"WARNING: {address}: --insecure: {who} can run code as you there, and read what you can"


def security_for(
    address: Address, certificates: Path | None, role: Role, *, insecure: bool = False
) -> Security | None:
    """Return the certificates of a role at an address.

    On loopback, missing certificates are created.

    Args:
        address: address of the scheduler.
        certificates: a folder made by `swathe pool init`; `None`: the user's own, on loopback.
        role: role of this process.
        insecure: whether to use none.

    Returns:
        Security settings for Dask; `None` only if none are used.

    Raises:
        SettingsError: If they are missing or not valid now, or others may read or change them.
    """
    folder = certificate_folder(address, certificates, insecure=insecure)
    if folder is None:
        return None
    if certificates is None:
        _make_own(folder, role)
    _check_folder(folder)
    authority, own, key = (folder / name for name in (f"{AUTHORITY}.pem", *_names(role)))
    for path in (authority, own, key):
        _check(path)
    return _security(authority, own, key)


def _make_own(folder: Path, role: Role) -> None:
    """Create the user's own certificates if they are missing.

    A starting scheduler replaces expired ones.
    """
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(folder.parent)
        if role == "scheduler" and (folder / f"{AUTHORITY}.pem").exists() and _is_over(folder):
            shutil.rmtree(folder)
        if not os.path.lexists(folder):
            _place(folder)
    except OSError as error:
        raise SettingsError(
            f"{folder}: cannot create certificates: {error.strerror}; "
            f"give a folder made by `{INIT}` as --certificates DIR"
        ) from error
    except OutputError as error:
        raise SettingsError(str(error)) from error
    _check_private(folder)


def _place(folder: Path) -> None:
    """Create certificates in one step; if two processes do, the first one counts."""
    new_folder = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        make_certificates(new_folder)
        new_folder.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)


def _is_over(folder: Path) -> bool:
    from cryptography import x509

    authority = x509.load_pem_x509_certificate((folder / f"{AUTHORITY}.pem").read_bytes())
    return authority.not_valid_after_utc <= datetime.now(UTC)


def _check_private(folder: Path) -> None:
    """Refuse a folder of own certificates that other users could enter."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise SettingsError(
            f"{folder}: expected a folder of your own, found one of another user; remove it"
        )
    if status.st_mode & 0o077:
        raise SettingsError(
            f"{folder}: expected mode 700, found {stat.S_IMODE(status.st_mode):o}: others may "
            "enter it; remove it, and new certificates are created"
        )


def _check_folder(folder: Path) -> None:
    """Refuse a folder whose files other users could replace."""
    try:
        status = folder.stat()
    except OSError as error:
        raise SettingsError(
            f"{folder}: cannot be read: {error.strerror}; `{INIT}` creates certificates"
        ) from error
    _check_owner(folder, status)
    if status.st_mode & 0o022:
        raise SettingsError(f"{folder}: other users can change it; run: chmod go-w")


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), ROOT):
        raise SettingsError(
            f"{path}: expected a file of user {os.geteuid()}, found one of user {status.st_uid}; "
            "copy it as the user who runs this"
        )


def _security(authority: Path, own: Path, key: Path) -> Security:
    from distributed.security import Security

    pair = {"cert": str(own), "key": str(key)}
    roles = {
        f"tls_{role}_{name}": path
        for role in ("client", "scheduler", "worker")
        for name, path in pair.items()
    }
    return Security(require_encryption=True, tls_ca_file=str(authority), **roles)


def _names(role: Role) -> tuple[str, str]:
    return f"{role}.pem", f"{role}.key"


def _check_mode(path: Path) -> None:
    """Refuse a certificate that other users can change, and a key that they can read."""
    status = path.stat()
    _check_owner(path, status)
    if path.suffix == ".key" and status.st_mode & 0o077:
        raise SettingsError(f"{path}: other users can read it; run: chmod 600")
    if status.st_mode & 0o022:
        raise SettingsError(f"{path}: other users can change it; run: chmod go-w")


def _check(path: Path) -> None:
    """Check that a file can be read and is a certificate valid now."""
    from cryptography import x509

    try:
        _check_mode(path)
        content = path.read_bytes()
        if path.suffix != ".pem":
            return
        certificate = x509.load_pem_x509_certificate(content)
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot be read: {error.strerror}; `{INIT}` creates certificates"
        ) from error
    except ValueError as error:
        raise SettingsError(f"{path}: not a certificate: {error}") from error
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
        raise SettingsError(
            f"{path}: valid only from {certificate.not_valid_before_utc:%Y-%m-%d} to "
            f"{certificate.not_valid_after_utc:%Y-%m-%d}; `{INIT}` creates new ones"
        )
