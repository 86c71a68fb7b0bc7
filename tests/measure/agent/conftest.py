"""The agent and a program for it to run, for this machine and for others."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansor.measure.agent.build import build_small, built_agent, system_named
from ansor.measure.agent.channel import ProcessChannel
from ansor.measure.agent.client import AgentClient

FAKE = Path(__file__).parent / "fake_program.c"


@pytest.fixture(scope="session")
def agent() -> Path:
    """The agent for this machine."""
    return built_agent()


@pytest.fixture(scope="session")
def fake_for(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """The fake program for a system."""
    made: dict[str, bytes] = {}

    def program(system: str) -> bytes:
        if system not in made:
            place = tmp_path_factory.mktemp("fake") / "program"
            compiled = build_small(FAKE, system, place)
            assert compiled.ok, compiled.text
            made[system] = place.read_bytes()
        return made[system]

    return program


@pytest.fixture(scope="session")
def fake(fake_for: Callable[[str], bytes]) -> bytes:
    """The fake program for this machine."""
    return fake_for(system_named(subprocess.check_output(["uname", "-m"], text=True).strip()))


@pytest.fixture
def client(agent: Path, tmp_path: Path) -> Iterator[AgentClient]:
    """A client of an agent that was started for it, whose files are in `tmp_path / "store"`."""
    client = AgentClient(lambda: ProcessChannel([str(agent), "-store", str(tmp_path / "store"), "-wait", "1"]))
    yield client
    client.close()
