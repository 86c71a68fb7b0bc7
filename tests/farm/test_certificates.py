"""What is in the certificates of a farm, as another library reads them."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from ansor.errors import DeviceError
from ansor.farm.certificates import AUTHORITY, DAYS, ROLES, make_certificates


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("farm") / "certificates"
    make_certificates(place)
    return place


def read(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.pem").read_bytes())


def test_the_authority_signs_and_does_nothing_else(folder: Path) -> None:
    authority = read(folder, AUTHORITY)
    basic, usage = (authority.extensions.get_extension_for_class(kind) for kind in (x509.BasicConstraints, x509.KeyUsage))
    assert basic.critical and basic.value == x509.BasicConstraints(ca=True, path_length=0)
    assert usage.critical and usage.value.key_cert_sign and usage.value.crl_sign and not usage.value.digital_signature
    authority.verify_directly_issued_by(authority)


@pytest.mark.parametrize("role", ROLES)
def test_a_member_answers_and_calls_and_signs_nobody(folder: Path, role: str) -> None:
    member, authority = read(folder, role), read(folder, AUTHORITY)
    basic, usage = (member.extensions.get_extension_for_class(kind) for kind in (x509.BasicConstraints, x509.KeyUsage))
    assert basic.critical and basic.value == x509.BasicConstraints(ca=False, path_length=None)
    assert usage.critical and usage.value.digital_signature and not usage.value.key_cert_sign and not usage.value.crl_sign
    purposes = member.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    assert list(purposes.value) == [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    member.verify_directly_issued_by(authority)
    key = load_pem_private_key((folder / f"{role}.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey) and key.public_key() == member.public_key()


def test_they_are_valid_from_now_for_two_years(folder: Path) -> None:
    for name in (AUTHORITY, *ROLES):
        one, now = read(folder, name), datetime.now(UTC)
        assert one.not_valid_before_utc < now and timedelta(0) <= now + timedelta(days=DAYS) - one.not_valid_after_utc < timedelta(hours=1)


def test_keys_are_for_their_owner_alone(folder: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.key")} == {0o600} and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len({(folder / f"{name}.key").read_bytes() for name in (AUTHORITY, *ROLES)}) == 1 + len(ROLES)


def test_folders_that_cannot_be_are_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="already has some in use"):
        make_certificates(folder)
    (tmp_path / "file").touch()
    with pytest.raises(DeviceError, match=r"asked to create certificates in .*file/here: Not a directory; name another folder"):
        make_certificates(tmp_path / "file" / "here")
