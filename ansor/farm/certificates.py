"""Certificates of a farm: its own authority, and one certificate for each role. A machine that has one of them is a member of the farm."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.errors import DeviceError
from ansor.support.safe_files import write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

AUTHORITY = "authority"
ROLES = ("scheduler", "worker", "client")
DAYS = 730
_PRIVATE, _PUBLIC = 0o600, 0o644


def make_certificates(folder: Path, days: float = DAYS) -> tuple[Path, ...]:
    """Write the authority, and a certificate and key for each role, into a folder that only its owner can read. Returns the files.

    The authority's own key is written, too, so that it can sign more certificates; keep it off the machines of the farm. Raises DeviceError if the folder has
    certificates already, or cannot be created.
    """
    if any((folder / f"{name}.pem").exists() for name in (AUTHORITY, *ROLES)):
        raise DeviceError(f"asked to create certificates in {folder}, which already has some in use; name another folder, or remove them")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(folder, 0o700)
    except OSError as error:
        raise DeviceError(f"asked to create certificates in {folder}: {error.strerror}; name another folder") from error
    key, authority = _signed(AUTHORITY, None, None, days)
    written = [*_written(folder, AUTHORITY, key, authority)]
    for role in ROLES:
        own, certificate = _signed(role, authority, key, days)
        written += _written(folder, role, own, certificate)
    return tuple(written)


def _signed(
    name: str, issuer: Certificate | None, issuer_key: EllipticCurvePrivateKey | None, days: float
) -> tuple[EllipticCurvePrivateKey, Certificate]:
    """A new key and its certificate, which is self-signed if no issuer is given."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"ansor farm {name}")])
    signer = key if issuer_key is None else issuer_key
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=0 if issuer is None else None), critical=True)
        .add_extension(_usage(issuer is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if issuer is not None:  # schedulers and workers are both servers and clients
        built = built.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    return key, built.sign(signer, hashes.SHA256())


def _usage(authority: bool):  # type: ignore[no-untyped-def]
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not authority, key_cert_sign=authority, crl_sign=authority, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _written(folder: Path, name: str, key: EllipticCurvePrivateKey, certificate: Certificate) -> Sequence[Path]:
    from cryptography.hazmat.primitives import serialization

    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = (folder / f"{name}.pem", folder / f"{name}.key")
    write_whole(files[0], certificate.public_bytes(serialization.Encoding.PEM), _PUBLIC)
    write_whole(files[1], private, _PRIVATE)
    return files
