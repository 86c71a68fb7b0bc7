"""Who gets into a farm: certificates that are right, and nobody else; what others send is refused, and the scheduler lives."""

from __future__ import annotations

import ipaddress
import os
import random
import shutil
import socket
import ssl
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # of Dask
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from ansor.errors import DeviceError
from ansor.farm.address import read_place, security
from ansor.farm.certificates import _signed, _written, make_certificates
from ansor.measure.device_kinds import open_devices
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster

TARGET = parse_target("cpu -threads=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("farm") / "certificates"
    make_certificates(place)
    return place


@pytest.fixture(scope="module")
def cluster(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), folder) as cluster:
        cluster.pretended("board", "one", 1)
        yield cluster


def opened(cluster: Cluster, certificates: Path) -> int:
    """How many devices a client with those certificates sees."""
    devices = open_devices([f"farm://{cluster.url}?key=board&certificates={certificates}"], TARGET, lambda text: None)
    for one in devices:
        one.close()
    return len(devices)


def lives(cluster: Cluster, folder: Path) -> None:
    assert cluster.scheduler.poll() is None and opened(cluster, folder) == 2


def test_members_get_in(cluster: Cluster, folder: Path) -> None:
    assert opened(cluster, folder) == 2
    assert "board" in cluster.run("farm", "status", cluster.url).stdout


def test_certificates_of_another_authority_are_refused(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    make_certificates(tmp_path / "other")
    with pytest.raises(DeviceError, match="refuses this machine's certificate"):
        opened(cluster, tmp_path / "other")
    mixed = tmp_path / "mixed"  # it trusts the farm, but has a certificate that it made itself
    shutil.copytree(tmp_path / "other", mixed)
    shutil.copy(folder / "authority.pem", mixed / "authority.pem")
    with pytest.raises(DeviceError, match="refuses this machine's certificate"):
        opened(cluster, mixed)
    lives(cluster, folder)


@pytest.mark.parametrize("days", [-0.001, 1])
def test_expired_certificates_are_refused(cluster: Cluster, tmp_path: Path, folder: Path, days: float) -> None:
    """Of the farm's own authority: nothing but the date is wrong with them, and with a date to come they are accepted."""
    theirs = tmp_path / "theirs"
    shutil.copytree(folder, theirs)
    authority = load_pem_x509_certificate((folder / "authority.pem").read_bytes())
    signer = load_pem_private_key((folder / "authority.key").read_bytes(), None)
    assert isinstance(signer, EllipticCurvePrivateKey)
    _written(theirs, "client", *_signed("client", authority, signer, days))
    if days > 0:
        assert opened(cluster, theirs) == 2
    else:
        with pytest.raises(DeviceError, match="refuses this machine's certificate"):
            opened(cluster, theirs)
    lives(cluster, folder)


def test_without_certificates_nothing_listens_beyond_loopback(tmp_path: Path) -> None:
    """Whoever reaches a worker of Dask's can have it run code."""
    with Cluster(tmp_path / "farm") as open_cluster:
        open_cluster.pretended("board", "one", 1)
        found = [line for one in open_cluster.processes for line in _listening(one.pid)]
        assert len(found) >= 2 and all(ipaddress.ip_address(address).is_loopback for address in found)


def _listening(pid: int) -> Iterator[str]:
    """The addresses that a process and those that it started listen on."""
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        yield from (line.laddr.ip for line in one.net_connections(kind="inet") if line.status == psutil.CONN_LISTEN)


def test_plaintext_is_refused(cluster: Cluster, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_FARM", str(tmp_path / "none"))
    with pytest.raises(DeviceError, match="without certificates: `ansor farm init`"):
        read_place("10.0.0.7:8786")
    with pytest.raises(DeviceError, match="no scheduler answers"):  # a scheduler that wants certificates, and a client without
        open_devices([f"farm://{cluster.url}?key=board"], TARGET, lambda text: None)
    lives(cluster, folder)


def _sends(cluster: Cluster, content: bytes, *, slowly: bool = False) -> None:
    """Bytes to the scheduler, until it closes the connection or they are all there."""
    host, _, port = cluster.url.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=2) as line:
        try:
            for at in range(0, len(content), 1 if slowly else 1 << 16):
                line.sendall(content[at : at + (1 if slowly else 1 << 16)])
                if slowly:
                    time.sleep(0.2)
            line.recv(1 << 16)
        except OSError:
            pass


def test_rubbish_is_refused(cluster: Cluster, folder: Path) -> None:
    """Without TLS, with half of it, with lengths of an exabyte, slowly: the scheduler goes on."""
    draw = random.Random(0)
    for _ in range(40):
        _sends(cluster, draw.randbytes(draw.choice((1, 7, 300, 5000))))
    _sends(cluster, (1 << 60).to_bytes(8, "little") * 3)
    _sends(cluster, b"\x16\x03\x01\xff\xff" + bytes(1 << 20))
    _sends(cluster, b"\x16\x03\x01\x02\x00\x01", slowly=True)
    lives(cluster, folder)


def test_a_hundred_silent_connections_keep_nobody_out(cluster: Cluster, folder: Path) -> None:
    host, _, port = cluster.url.rpartition(":")
    lines = [socket.create_connection((host, int(port)), timeout=2) for _ in range(100)]
    try:
        lives(cluster, folder)
    finally:
        for line in lines:
            line.close()


def test_what_was_recorded_on_the_line_cannot_be_said_again(cluster: Cluster, folder: Path) -> None:
    """The bytes of a right conversation, as somebody on the way saw them, sent once more."""
    seen = bytearray()
    context = ssl.create_default_context(cafile=str(folder / "authority.pem"))
    context.check_hostname = False
    context.load_cert_chain(folder / "client.pem", folder / "client.key")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    wrapped = context.wrap_bio(incoming, outgoing)
    host, _, port = cluster.url.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        while True:
            try:
                wrapped.do_handshake()
                break
            except ssl.SSLWantReadError:
                said = outgoing.read()
                seen += said
                line.sendall(said)
                incoming.write(line.recv(1 << 16))
        said = outgoing.read()
        seen += said
        line.sendall(said)
    _sends(cluster, bytes(seen))
    lives(cluster, folder)


def test_keys_are_for_their_owner_alone(folder: Path, tmp_path: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.key")} == {0o600} and stat.S_IMODE(folder.stat().st_mode) == 0o700
    shutil.copytree(folder, tmp_path / "open")
    os.chmod(tmp_path / "open" / "client.key", 0o644)
    with pytest.raises(DeviceError, match="other users may read .*client.key"):
        security(read_place("127.0.0.1:1", str(tmp_path / "open")))
    with pytest.raises(DeviceError, match="already has some in use"):
        make_certificates(folder)


def test_a_member_needs_only_the_files_of_its_role(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    for name in ("authority.pem", "client.pem", "client.key"):
        (tmp_path / "client").mkdir(exist_ok=True)
        shutil.copy(folder / name, tmp_path / "client" / name)
    assert opened(cluster, tmp_path / "client") == 2
    (tmp_path / "client" / "authority.pem").unlink()
    with pytest.raises(DeviceError, match=r"authority\.pem"):
        opened(cluster, tmp_path / "client")
