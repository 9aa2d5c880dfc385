"""Who may take part in a pool: addresses, and the certificates that are needed beyond loopback.

Scheduler, workers and portal know each other by certificates of one authority, made for the pool by
`swathe pool init`. Whoever holds the key of any of them can run code on all workers.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from swathe.environment import in_url, is_loopback
from swathe.errors import OutputError, SettingsError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from distributed.security import Security

Role = Literal["scheduler", "worker", "portal"]

ROLES: tuple[Role, ...] = ("scheduler", "worker", "portal")
AUTHORITY = "ca"
ADDRESS = re.compile(r"(?:(dask|tcp|tls)://)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})/?")
INIT = "swathe pool init DIR"
DAYS = 825
EARLY = timedelta(days=1)
"""Clocks of machines differ."""


@dataclass(frozen=True)
class Address:
    """Where a scheduler listens, and whether by TLS only (`tls`), never (`tcp`), or as fits."""

    scheme: Literal["dask", "tcp", "tls"]
    host: str
    port: int

    def __str__(self) -> str:
        """Give it as it is written."""
        return f"{self.scheme}://{in_url(self.host)}:{self.port}"

    def url(self, security: Security | None) -> str:
        """Give it as Dask takes it."""
        return f"{protocol(security)}://{in_url(self.host)}:{self.port}"


def read_address(text: str) -> Address:
    """Read `dask://HOST:PORT`, or with tcp:// or tls://.

    Raises:
        SettingsError: where it is none.
    """
    found = ADDRESS.fullmatch(text.strip())
    if found is None or not 0 < int(found[3]) < 65536:
        raise SettingsError(f"expected the address of a scheduler, dask://HOST:PORT, not {text!r}")
    return Address(found[1] or "dask", found[2].strip("[]"), int(found[3]))  # type: ignore[arg-type]  # the pattern has no other


def protocol(security: Security | None) -> str:
    """Give what Dask calls connections with or without certificates."""
    return "tcp" if security is None else "tls"


def security_for(address: Address, certificates: Path | None, role: Role) -> Security | None:
    """Give the certificates that somebody in a role uses at an address; none on loopback.

    Raises:
        SettingsError: where they are needed and not given, or given and of no use.
    """
    if certificates is None:
        if address.scheme == "tls" or not is_loopback(address.host):
            raise SettingsError(
                f"{address}: beyond loopback, a pool needs certificates: make them with "
                f"`{INIT}`, and give --certificates DIR"
            )
        return None
    if address.scheme == "tcp":
        raise SettingsError(
            f"{address}: tcp:// has no use for certificates; write tls:// or dask://"
        )
    authority, own, key = (certificates / name for name in (f"{AUTHORITY}.pem", *_names(role)))
    for path in (authority, own, key):
        _check(path)
    if key.stat().st_mode & 0o077:
        raise SettingsError(f"{key}: others may read it; let nobody else: chmod 600")
    return _security(authority, own, key)


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


def _check(path: Path) -> None:
    """Raise where a file cannot be read, or is of a certificate that is not good now."""
    from cryptography import x509

    try:
        content = path.read_bytes()
        if path.suffix != ".pem":
            return
        found = x509.load_pem_x509_certificate(content)
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot be read: {error.strerror}; `{INIT}` makes certificates"
        ) from error
    except ValueError as error:
        raise SettingsError(f"{path}: is no certificate: {error}") from error
    now = datetime.now(UTC)
    if not found.not_valid_before_utc <= now < found.not_valid_after_utc:
        raise SettingsError(
            f"{path}: is good from {found.not_valid_before_utc:%Y-%m-%d} to "
            f"{found.not_valid_after_utc:%Y-%m-%d} only; `{INIT}` makes new ones"
        )


def make_certificates(folder: Path, days: int = DAYS) -> list[Path]:
    """Make an authority and a certificate for each role, in files that only their owner can read.

    Raises:
        OutputError: where one of the files is there, or cannot be written.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    names = [name for role in (AUTHORITY, *ROLES) for name in (f"{role}.pem", f"{role}.key")]
    there = next((folder / name for name in names if (folder / name).exists()), None)
    if there is not None:
        raise OutputError(f"{there}: is there already; certificates are never overwritten")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _signed("swathe pool", authority_key, days, None)
    made = {AUTHORITY: (authority, authority_key)}
    for role in ROLES:
        key = ec.generate_private_key(ec.SECP256R1())
        made[role] = _signed(f"swathe {role}", key, days, (authority, authority_key)), key
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return [path for name, pair in made.items() for path in _written(folder, name, *pair)]
    except OSError as error:
        raise OutputError(f"{folder}: cannot write certificates: {error}") from error


def _signed(
    name: str,
    key: EllipticCurvePrivateKey,
    days: int,
    by: tuple[x509.Certificate, EllipticCurvePrivateKey] | None,
) -> x509.Certificate:
    """Make a certificate, signed by an authority; by itself where it is one."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = key if by is None else by[1]
    now = datetime.now(UTC)
    is_authority = by is None
    usage = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True, key_cert_sign=is_authority, crl_sign=is_authority, **usage
            ),
            True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False
        )
    )
    if not is_authority:
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), False)
    return builder.sign(signer, hashes.SHA256())


def _written(
    folder: Path, name: str, certificate: x509.Certificate, key: EllipticCurvePrivateKey
) -> list[Path]:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    contents = {
        folder / f"{name}.pem": certificate.public_bytes(Encoding.PEM),
        folder / f"{name}.key": key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ),
    }
    for path, content in contents.items():
        # Nobody may read it, not even for a moment; and what is there is not written over.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    return list(contents)
