"""Who gets into a farm: certificates that are right, and nobody else; what others send is refused, and the scheduler lives."""

from __future__ import annotations

import ipaddress
import os
import random
import re
import shutil
import socket
import socketserver
import ssl
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Self

import psutil  # type: ignore[import-untyped]  # of Dask
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from ansor.errors import DeviceError
from ansor.farm.address import read_place, security
from ansor.farm.certificates import _signed, _written, make_certificates
from ansor.farm.status import farm_status
from ansor.measure.device import Observation
from ansor.measure.device_kinds import open_devices
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster
from tests.pretended_device import job

TARGET = parse_target("cpu -threads=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("farm") / "certificates"
    make_certificates(place)
    return place


@pytest.fixture(scope="module")
def cluster(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), folder, options=("--handshake", "3")) as cluster:
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


class Tomorrow(datetime):
    """Certificates made by it are valid from tomorrow."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(time.time() + 86400, tz)


def test_certificates_that_are_not_valid_yet_are_refused(cluster: Cluster, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "theirs"
    shutil.copytree(folder, theirs)
    authority = load_pem_x509_certificate((folder / "authority.pem").read_bytes())
    signer = load_pem_private_key((folder / "authority.key").read_bytes(), None)
    assert isinstance(signer, EllipticCurvePrivateKey)
    monkeypatch.setattr("ansor.farm.certificates.datetime", Tomorrow)
    _written(theirs, "client", *_signed("client", authority, signer, 1))
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
    with pytest.raises(DeviceError, match=r"no scheduler answers there, or it requires certificates, and .*none has none \("):
        open_devices([f"farm://{cluster.url}?key=board"], TARGET, lambda text: None)
    lives(cluster, folder)


GIGABYTE = 1 << 30
GROWTH = 64 << 20
"""How much memory the scheduler may take for what strangers send."""

STRANGE: dict[str, bytes] = {
    "a message of a gigabyte": GIGABYTE.to_bytes(8, "little") + bytes(32 << 20),
    "a message of an exabyte": (1 << 60).to_bytes(8, "little") * 3,
    "a TLS record that is too long": b"\x16\x03\x01\xff\xff" + bytes(1 << 20),
    "a TLS greeting of 16 megabytes": (b"\x16\x03\x01\x40\x00" + b"\x01\xff\xff\xff" + bytes((1 << 14) - 4)) * 1024,
    **{f"{size} random bytes": random.Random(size).randbytes(size) for size in (6, 300, 5000, 100_000)},
}


def _line(cluster: Cluster, certificates: Path | None = None, *, shown: bool = True) -> socket.socket:
    """A connection to the scheduler: plain, or with those certificates, which are shown or not."""
    host, _, port = cluster.url.rpartition(":")
    line = socket.create_connection((host, int(port)), timeout=60)
    if certificates is None:
        return line
    context = ssl.create_default_context(cafile=str(certificates / "authority.pem"))
    context.check_hostname = False
    if shown:
        context.load_cert_chain(certificates / "client.pem", certificates / "client.key")
    return context.wrap_socket(line)


def _is_refused(line: socket.socket, content: bytes, pause: float = 0.0) -> bool:
    """Whether the scheduler closes the connection, while it is sent that or afterwards. pause: after each byte, so many seconds. Its answers are not read by
    anybody but TLS, which raises an error for the alert of the other side."""
    step = 1 if pause else 1 << 16
    with line:
        try:
            for at in range(0, len(content), step):
                line.sendall(content[at : at + step])
                time.sleep(pause)
            while line.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
    return True


@contextmanager
def unmoved(cluster: Cluster, folder: Path, tmp_path: Path) -> Iterator[None]:
    """What happens inside changes nothing: neither devices, nor their jobs, nor memory; and afterwards a trial is measured."""
    before, peak = _devices(cluster, folder), _peak_bytes(cluster)
    yield
    assert cluster.scheduler.poll() is None and _devices(cluster, folder) == before
    assert _peak_bytes(cluster) - peak < GROWTH
    _measures(cluster.url, folder, tmp_path)
    assert [jobs for _, jobs in _devices(cluster, folder)] == [before[0][1] + 1]


def _devices(cluster: Cluster, folder: Path) -> list[tuple[str, int]]:
    """Those that the scheduler knows, and how many jobs they have done."""
    return [(one.device, one.done.jobs) for one in farm_status(read_place(cluster.url, str(folder))).devices]


def _peak_bytes(cluster: Cluster) -> int:
    """The most memory that the scheduler has ever had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{cluster.scheduler.pid}/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def _measures(url: str, folder: Path, tmp_path: Path) -> None:
    devices = open_devices([f"farm://{url}?key=board&certificates={folder}"], TARGET, lambda text: None)
    outcome = devices[0].run(job(tmp_path, "3"))
    for one in devices:
        one.close()
    assert isinstance(outcome, Observation) and outcome.costs == (3.0,)


@pytest.mark.parametrize("what", STRANGE)
def test_what_strangers_send_in_plaintext_is_refused(cluster: Cluster, folder: Path, tmp_path: Path, what: str) -> None:
    with unmoved(cluster, folder, tmp_path):
        assert _is_refused(_line(cluster), STRANGE[what])


@pytest.mark.parametrize("who", ["no certificate", "one of its own", "one of another farm"])
def test_what_strangers_send_over_tls_is_refused(cluster: Cluster, folder: Path, tmp_path: Path, who: str) -> None:
    """Whoever shows no certificate of the farm is told so after its own side of the handshake: a message may be on its way by then."""
    theirs = tmp_path / "theirs"
    if who == "one of another farm":
        make_certificates(theirs)
        shutil.copy(folder / "authority.pem", theirs)
    else:
        shutil.copytree(folder, theirs)
        _written(theirs, "client", *_signed("client", None, None, 1))
    with unmoved(cluster, folder, tmp_path):
        for content in STRANGE.values():
            assert _is_refused(_line(cluster, theirs, shown=who != "no certificate"), content)
        assert _is_refused(_line(cluster, theirs, shown=who != "no certificate"), bytes(600), pause=0.1)


def test_whoever_greets_a_byte_at_a_time_is_not_waited_for(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    """A minute's worth of bytes, and the time for a handshake is three seconds."""
    with unmoved(cluster, folder, tmp_path):
        assert _is_refused(_line(cluster), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + bytes(51), pause=1.0)


def test_members_may_be_slow_or_announce_too_much_and_nobody_waits(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    """What is announced takes memory as it comes, and not before."""
    peak = _peak_bytes(cluster)
    with ExitStack() as lines:
        for content in (GIGABYTE.to_bytes(8, "little") + bytes(1 << 20), GIGABYTE.to_bytes(8, "little")[:5], b""):
            lines.enter_context(_line(cluster, folder)).sendall(content)
        _measures(cluster.url, folder, tmp_path)
    assert cluster.scheduler.poll() is None and _peak_bytes(cluster) - peak < GROWTH
    _measures(cluster.url, folder, tmp_path)


class Eavesdropper(socketserver.ThreadingTCPServer):
    """A way to the scheduler. heard: what clients sent, by connection."""

    daemon_threads = True

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        host, _, port = cluster.url.rpartition(":")
        self.onwards, self.heard = (host, int(port)), list[bytearray]()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class Passing(socketserver.BaseRequestHandler):
    """One connection of its."""

    def handle(self) -> None:
        assert isinstance(self.server, Eavesdropper)
        heard = bytearray()
        self.server.heard.append(heard)
        with socket.create_connection(self.server.onwards) as onward:
            threading.Thread(target=_pass_on, args=(onward, self.request, bytearray()), daemon=True).start()
            _pass_on(self.request, onward, heard)


def _pass_on(source: socket.socket, sink: socket.socket, heard: bytearray) -> None:
    with suppress(OSError):
        while content := source.recv(1 << 16):
            heard += content
            sink.sendall(content)
        sink.shutdown(socket.SHUT_WR)


def test_what_was_recorded_on_the_line_cannot_be_said_again(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    """A whole session in which a trial is measured."""
    with Eavesdropper(cluster) as ear:
        _measures(f"127.0.0.1:{ear.server_address[1]}", folder, tmp_path)
    assert sum(map(len, ear.heard)) > 2000
    with unmoved(cluster, folder, tmp_path):
        for heard in ear.heard:
            assert _is_refused(_line(cluster), bytes(heard))


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


def test_certificates_where_the_scheduler_has_none_are_told(folder: Path, tmp_path: Path) -> None:
    with Cluster(tmp_path / "farm") as open_cluster:
        words = f"uses no certificates, but {folder} has some"
        with pytest.raises(DeviceError, match=words):
            farm_status(read_place(open_cluster.url, str(folder)))
        command = ("farm", "worker", open_cluster.url, "--key", "x", "--device", "local", "--certificates", str(folder))
        worker = open_cluster.start(*command, output=subprocess.PIPE)
        assert worker.stdout is not None and words in worker.stdout.readline()
