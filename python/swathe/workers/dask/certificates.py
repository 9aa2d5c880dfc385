"""Certificates of a pool: an authority, and a certificate per role that it signs."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from swathe.core.errors import OutputError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

Role = Literal["scheduler", "worker", "portal"]

ROLES: tuple[Role, ...] = ("scheduler", "worker", "portal")
AUTHORITY = "ca"
DAYS = 825
EARLY = timedelta(days=1)
"""Validity begins a day early: clocks of machines differ."""


def make_certificates(folder: Path, days: int = DAYS) -> list[Path]:
    """Write an authority and a certificate per role, in files that only their owner can read.

    Raises:
        OutputError: If one of the files exists, or cannot be written.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    names = [name for role in (AUTHORITY, *ROLES) for name in (f"{role}.pem", f"{role}.key")]
    present = next((folder / name for name in names if (folder / name).exists()), None)
    if present is not None:
        raise OutputError(f"{present}: already exists; certificates are never overwritten")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _sign("swathe pool", authority_key, days, None)
    certificates = {AUTHORITY: (authority, authority_key)}
    for role in ROLES:
        key = ec.generate_private_key(ec.SECP256R1())
        certificates[role] = _sign(f"swathe {role}", key, days, (authority, authority_key)), key
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return [path for name, pair in certificates.items() for path in _write(folder, name, *pair)]
    except OSError as error:
        raise OutputError(f"{folder}: cannot write certificates: {error}") from error


def _sign(
    name: str,
    key: EllipticCurvePrivateKey,
    days: int,
    by: tuple[x509.Certificate, EllipticCurvePrivateKey] | None,
) -> x509.Certificate:
    """Create a certificate, signed by an authority; an authority signs itself."""
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


def _write(
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
        # Private from its creation, and an existing file is not overwritten.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    return list(contents)
