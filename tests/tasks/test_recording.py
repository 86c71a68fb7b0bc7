"""Sketches recorded together against each alone: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ansor.codegen import tape_library
from ansor.ir.tape import Column, Node, Recorder
from ansor.schedule.sketch import Sketch
from ansor.search.derive import spaces
from ansor.targets.base import parse_target
from ansor.tasks.recording import RecordedSketch, recorded, together
from ansor.tasks.task import SearchTask
from ansor.te import workloads
from tests import declarations, mixed_declarations
from tests.declarations import seeded_draw

pytestmark = pytest.mark.compiler
TARGET = parse_target("cpu -mcpu=znver3 -threads=3")


def described(sketch: Sketch, found: RecordedSketch) -> list[bytes]:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, size, 9) for size in sketch.sizes], axis=1) if len(sketch.sizes) else np.zeros((9, 0), np.int64)
    features = found.features(rows)
    return [features.rows.tobytes(), features.prior_logs().tobytes(), found.legal(rows).tobytes()]


def check(sketches: list[Sketch]) -> None:
    with together():
        shared = [recorded(sketch, TARGET) for sketch in sketches]
    for sketch, found in zip(sketches, shared, strict=True):
        assert described(sketch, found) == described(sketch, recorded(sketch, TARGET)), str(sketch)


@pytest.mark.parametrize("kind", sorted(declarations.KINDS))
def test_any_declaration(kind: str) -> None:
    check(spaces(declarations.random_case(seeded_draw(5), kind).dag, TARGET)[:8])


@pytest.mark.parametrize("kind", sorted(mixed_declarations.ALL_KINDS))
def test_any_mixed_declaration(kind: str) -> None:
    check(spaces(mixed_declarations.any_case(seeded_draw(5), kind).dag, TARGET)[:8])


def test_algorithms_of_a_convolution_take_turns() -> None:
    task = SearchTask(tensors=workloads.conv2d_nchw_bn_relu(1, 14, 14, 16, 32, 3, 1, 1), target=TARGET)
    check([space.sketch for space in task.spaces[::9]])


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape_library, "_library", lambda compiler: None)
    check([space.sketch for space in SearchTask(tensors=workloads.matmul(32, 16, 48), target=TARGET).spaces[:4]])


def test_what_is_shared_is_forgotten_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []

    class Watched(Recorder):
        def forget(self) -> None:
            super().forget()
            kept.append(len(self.nodes))

    monkeypatch.setattr("ansor.tasks.recording.Recorder", Watched)
    sketches = [space.sketch for space in SearchTask(tensors=workloads.matmul(32, 16, 48), target=TARGET).spaces[:3]]
    with together(), together():
        for sketch in sketches:
            recorded(sketch, TARGET)
        assert not kept
    assert kept == [0]
    for sketch in sketches:
        recorded(sketch, TARGET)
    assert kept == [0] * 4


class Given(Recorder):
    """A recorder of these operations."""

    def __init__(self, nodes: dict[Node, Column]) -> None:
        super().__init__()
        self.nodes = nodes


class Asked(dict[Node, Column]):
    """Operations, which counts how often one is asked for that was recorded before."""

    again = 0

    def get(self, key: Node, otherwise: Any = None) -> Any:
        self.again += key in self
        return super().get(key, otherwise)


def test_few_operations_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of a statement's description that its sketches and its columns share are computed once: each operation takes time, recorded before or not."""
    asked = Asked()
    monkeypatch.setattr("ansor.tasks.recording.Recorder", lambda: Given(asked))
    task = SearchTask(tensors=workloads.conv2d_nchw_bn_relu(1, 14, 14, 16, 32, 3, 1, 1), target=TARGET)
    of_winograd = [space.sketch for space in task.spaces if space.algorithm == "winograd_f4"]
    with together():
        for sketch in of_winograd[:4]:
            recorded(sketch, TARGET)
        assert len(asked) > 10_000 and asked.again < 2 * len(asked)
