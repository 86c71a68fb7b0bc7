"""Farms beyond loopback, in networks of their own: only members get in, and whatever else comes over the wire, the scheduler lives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ansor.farm.certificates import make_certificates
from tests.farm_cluster import Cluster
from tests.namespaces import Namespace, two_networks

TALK = """
import os, random, socket, ssl, sys, time
host, port, folder, how = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
line = socket.create_connection((host, port), timeout=5)
if folder:
    context = ssl.create_default_context(cafile=folder + "/authority.pem")
    context.check_hostname = False
    context.load_cert_chain(folder + "/client.pem", folder + "/client.key")
    line = context.wrap_socket(line)
draw = random.Random(0)
line.settimeout(60)
try:
    if how == "rubbish":
        line.sendall(draw.randbytes(100_000))
    elif how == "huge":  # a gigabyte is announced, and a thousandth of it comes
        line.sendall((1 << 30).to_bytes(8, "little") + bytes(1 << 20))
        time.sleep(4)
    elif how == "huger":
        line.sendall((1 << 60).to_bytes(8, "little") * 4)
        time.sleep(1)
    elif how == "slow":  # a byte a second
        for byte in (1 << 10).to_bytes(8, "little")[:6]:
            line.sendall(bytes([byte]))
            time.sleep(1)
    while line.recv(1 << 16):
        if how == "listen":
            break
except OSError as error:
    print(type(error).__name__)
"""


@dataclass(frozen=True)
class Networks:
    """A scheduler and a worker here, and what reaches them over a wire."""

    cluster: Cluster
    certificates: Path
    here: Namespace
    there: Namespace

    def status(self, certificates: Path | None = None) -> subprocess.CompletedProcess[str]:
        """What a member there is told."""
        return self.cluster.run("farm", "status", self.cluster.url, "--certificates", str(certificates or self.certificates), within=self.there)

    def talking(self, how: str, certificates: Path | None) -> subprocess.Popen[str]:
        """Somebody there who says something else."""
        host, _, port = self.cluster.url.rpartition(":")
        command = [*self.there.entering, sys.executable, "-c", TALK, host, port, str(certificates or ""), how]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def lives(self) -> None:
        """A member there sees the farm as it is."""
        found = self.status()
        assert self.cluster.scheduler.poll() is None and found.returncode == 0 and "board" in found.stdout, found.stdout + found.stderr

    @property
    def megabytes(self) -> float:
        """The memory of the scheduler."""
        return int(Path(f"/proc/{self.cluster.scheduler.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Networks]:
    folder = tmp_path_factory.mktemp("certificates") / "farm"
    make_certificates(folder)
    with two_networks() as (here, there), Cluster(tmp_path_factory.mktemp("farm"), folder, within=here, options=("--handshake", "3")) as cluster:
        cluster.worker("board", f"pretended:one,{cluster.folder},1", within=there)
        yield Networks(cluster, folder, here, there)


def test_members_get_in_over_the_wire(networks: Networks) -> None:
    assert networks.cluster.url.startswith(f"{networks.here.address}:")
    networks.lives()


def test_nobody_listens_or_joins_in_plaintext(networks: Networks, tmp_path: Path) -> None:
    url, none = networks.cluster.url, os.environ | {"ANSOR_FARM": str(tmp_path / "none")}
    for words in (["scheduler", "--listen", f"{networks.here.address}:0"], ["worker", url, "--key", "board", "--device", "local"], ["status", url]):
        command = [*networks.here.entering, sys.executable, "-m", "ansor", "farm", *words]
        found = subprocess.run(command, env=none, capture_output=True, text=True, timeout=60, check=False)
        assert found.returncode != 0 and "on another machine, without certificates: `ansor farm init`" in found.stderr


def test_who_speaks_plaintext_all_the_same_is_not_heard(networks: Networks) -> None:
    """Dask's own client, without what refuses that here."""
    code = f"import asyncio, distributed as d\nd.Client('tcp://{networks.cluster.url}', timeout=5)"
    found = networks.there.run(sys.executable, "-c", code)
    assert found.returncode != 0 and "Connection reset by peer" in found.stderr


def test_certificates_that_are_not_the_farms_are_refused(networks: Networks, tmp_path: Path) -> None:
    make_certificates(tmp_path / "other")
    shutil.copytree(tmp_path / "other", tmp_path / "own")  # it trusts the farm, and shows what it made itself
    shutil.copy(networks.certificates / "authority.pem", tmp_path / "own" / "authority.pem")
    make_certificates(tmp_path / "expired", days=-0.001)
    for name in ("other", "own", "expired"):
        found = networks.status(tmp_path / name)
        assert found.returncode != 0 and "refuses this machine's certificate" in found.stderr and found.stderr.count("\n") == 1, found.stderr
    networks.lives()


@pytest.mark.parametrize("member", [False, True], ids=["stranger", "member"])
def test_what_is_malformed_huge_or_slow_is_bounded(networks: Networks, member: bool) -> None:
    """A gigabyte that is announced takes no memory before it comes, and who is slow keeps nobody waiting. Whoever shows no certificate is hung up on; members
    may take their time."""
    certificates, before = (networks.certificates if member else None), networks.megabytes
    talking = [networks.talking(how, certificates) for how in ("rubbish", "huge", "huger", "slow", "listen")]
    try:
        networks.lives()
        for one in [] if member else talking:
            said, wrong = one.communicate(timeout=100)
            assert one.returncode == 0 and "TimeoutError" not in said, said + wrong
        networks.lives()
        assert networks.megabytes < before + 64
    finally:
        for one in talking:
            one.kill()
            one.communicate()
