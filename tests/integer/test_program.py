"""`ansor.compile_int8`: from a model to what people get."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import ansor
from ansor.errors import ArgumentError, ModelError, TargetError
from ansor.integer.compiling import tasks_of
from ansor.integer.plan import arena_of, steps_of
from ansor.integer.program import IntegerProgram
from ansor.targets.base import parse_target
from tests.integer.models import quantised_file, samples, small

pytestmark = [pytest.mark.compiler, pytest.mark.torch]
PLAIN = "cpu -mcpu=x86-64 -vector-bytes=4 -mattr=-sse2"


@pytest.fixture(scope="module")
def made() -> IntegerProgram:
    lines: list[str] = []
    found = ansor.compile_int8(small(), samples(), PLAIN, name="small", trials=0, report=lines.append)
    assert lines[0] == "softmax after the output is left to the caller"
    return found


def test_what_it_says_of_itself(made: IntegerProgram) -> None:
    assert repr(made).startswith("IntegerProgram(small for cpu -mcpu=x86-64 ") and f"{made.arena_bytes} bytes of arena" in repr(made)
    lines = made.table.splitlines()
    assert lines[0].split()[:2] == ["layer", "kind"] and len(lines) == len(made.code.calls) + 2


def test_it_runs_here_and_follows_the_model(made: IntegerProgram) -> None:
    for x in samples(3):
        (found,), (expected,) = made({"x": x.numpy()}).values(), made.expected({"x": x.numpy()}).values()
        assert np.array_equal(found, expected)
        with torch.no_grad():
            assert torch.allclose(torch.from_numpy(found).float().softmax(1), small()(x), atol=0.03)


def test_a_file_and_a_network_are_read_too(made: IntegerProgram, tmp_path: Path) -> None:
    file = quantised_file(small(), tmp_path)
    assert ansor.compile_int8(file, target=PLAIN, trials=0).network.name == "quantised"
    assert ansor.compile_int8(made.network, target=PLAIN, trials=0, name="other").network.name == "other"
    with pytest.raises(ModelError, match="an ONNX file is quantised already"):
        ansor.compile_int8(file, samples(), PLAIN)


def test_what_cannot_be_meant(made: IntegerProgram) -> None:
    with pytest.raises(ModelError, match=r"needs \d+ bytes of RAM .* but the board has 500"):
        ansor.compile_int8(made.network, target=PLAIN, ram_bytes=500)
    with pytest.raises(ModelError, match="bytes of flash for its constants, but the board has 10"):
        ansor.compile_int8(made.network, target=PLAIN, flash_bytes=10)
    with pytest.raises(ModelError, match="without calibration inputs"):
        ansor.compile_int8(small(), target=PLAIN)
    with pytest.raises(ArgumentError, match="trails"):
        ansor.compile_int8(made.network, target=PLAIN, trails=3)  # type: ignore[call-arg]  # misspelt
    with pytest.raises(ModelError, match=r"asked for an arena of 64 bytes, but the tensors of \w+ alone need \d+: ask for more"):
        ansor.compile_int8(made.network, target=PLAIN, arena_bytes=64)
    with pytest.raises(ModelError, match="asked for an arena of 70000 bytes on a board with 65536 bytes of RAM"):
        ansor.compile_int8(made.network, target=PLAIN, ram_bytes=65536, arena_bytes=70000)
    with pytest.raises(ModelError, match="asked for arena_bytes='64K'; give a number of bytes"):
        ansor.compile_int8(made.network, target=PLAIN, arena_bytes="64K")  # type: ignore[arg-type]  # as on the command line
    with pytest.raises(TargetError, match="which is not a board"):
        made.firmware("nowhere")


def test_kernels_are_tuned_and_recorded(made: IntegerProgram, tmp_path: Path) -> None:
    records = tmp_path / "r.jsonl"
    found = ansor.compile_int8(made.network, target="cpu -threads=1", trials=8, records=records, progress=False)
    assert records.exists() and any(one.cost is not None for one in found.code.kernels)
    again = ansor.compile_int8(made.network, target="cpu -threads=1", trials=0, records=records, progress=False)
    assert any(one.cost is not None for one in again.code.kernels)
    assert again.on_host.selftest() == found.on_host.selftest() == 0


def test_an_arena_with_room_for_workspaces(made: IntegerProgram) -> None:
    """Steps may keep what it has beside the tensors that are alive; numbers stay the same."""

    def limits(arena: int) -> list[int]:
        return [task.target.hardware.memory.workspace_bytes for task, _ in tasks_of(made.network, parse_target(PLAIN), arena)]

    least = arena_of(made.network, [0] * len(steps_of(made.network)), 4)
    assert limits(0) == limits(least.size) and all(wide >= (1 << 20) - max(least.alive) for wide in limits(1 << 20))
    roomy = ansor.compile_int8(made.network, target=PLAIN, trials=0, arena_bytes=1 << 20)
    assert made.arena_bytes <= roomy.arena_bytes <= 1 << 20
    values = {name: np.random.default_rng(0).integers(-128, 128, made.network.tensors[name].shape).astype(np.int8) for name in made.network.inputs}
    expected, found = made.on_host.run(values), roomy.on_host.run(values)
    assert all(np.array_equal(found[name], expected[name]) for name in made.network.outputs)
