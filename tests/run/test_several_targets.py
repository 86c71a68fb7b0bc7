"""Which tasks share a target, and whose devices are meant."""

from __future__ import annotations

import re
from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import pytest

from ansor.errors import ArgumentError, TargetError
from ansor.measure.device import Device
from ansor.run.several_targets import Devices, DevicesByTarget, check_shared, devices_by_target, tasks_by_target
from ansor.targets.base import Target, parse_target
from ansor.tasks.task import SearchTask
from ansor.te import workloads

A, B = parse_target("micro -board=mps2-an386"), parse_target("micro -board=qemu-riscv32")
NAMES, BOTH = [str(A), str(B)], f"{A} and {B}"


BOARD = cast(Device, SimpleNamespace(name="board"))


def task(target: Target, size: int = 8) -> SearchTask:
    return SearchTask(workloads.matmul, (size, size, size), target)


def test_tasks_of_a_target_come_together_in_the_order_of_the_first() -> None:
    found = tasks_by_target([task(B), task(A), task(A, 16), task(B, 16)])
    assert [(one.target, one.places) for one in found] == [(B, (0, 3)), (A, (1, 2))]


def test_a_limit_of_one_task_does_not_make_another_target() -> None:
    smaller = parse_target(f"{A} -workspace=64")
    assert [(one.target, one.name, one.places) for one in tasks_by_target([task(smaller), task(A)])] == [(smaller, str(A), (0, 1))]
    assert devices_by_target([str(A)], {smaller: "a"}) == ["a"]


@pytest.mark.parametrize("devices", [{str(A): "a", str(B): ["b", "c"]}, {B: ["b", "c"], A: "a"}])
def test_devices_are_named_by_the_text_of_a_target_or_itself(devices: DevicesByTarget) -> None:
    assert devices_by_target(NAMES, devices) == ["a", ["b", "c"]]


def test_devices_of_a_single_target_need_no_name() -> None:
    assert devices_by_target([str(A)], ["a", "b"]) == [["a", "b"]] == devices_by_target([str(A)], {A: ["a", "b"]})


def test_without_devices_every_target_has_its_own() -> None:
    assert devices_by_target(NAMES, None) == [None, None] == devices_by_target(NAMES, {A: None, B: None})


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        (["a", "b"], f"asked to measure for {BOTH} with devices=['a', 'b']; say whose they are: devices={{'{A}': [...], '{B}': [...]}}"),
        ({A: "a"}, f"asked to measure for {BOTH} without devices for {B}; name some, or give None for its own"),
        (
            {str(A): "a", str(B): "b", "cpu": "c"},
            f"asked to measure for {BOTH} with devices for {parse_target('cpu')}, which has no tasks; leave it out, or add tasks for it",
        ),
        ({A: "a", str(A): "b"}, f"asked for devices of {A} twice; name each target once"),
    ],
)
def test_devices_of_nobody(devices: Devices | DevicesByTarget, said: str) -> None:
    with pytest.raises(ArgumentError) as error:
        devices_by_target(NAMES, devices)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("targets", "devices", "shared"),
    [
        ((A, B), ["gdb://b:1", ["gdb://a:1", "gdb://b:1"]], "gdb://b:1"),
        ((A, B), [BOARD, [BOARD]], "board"),
        ((parse_target("micro -board=stm32f746g-disco"), parse_target("micro -board=nrf52840dk")), [None, None], "gdb://localhost:3333"),
        ((A, B), ["gdb://a:1", "gdb://b:1"], ""),
        ((A, B), [None, None], ""),
        ((A, B), ["farm://a:1?key=k", ["farm://a:1?key=k"]], ""),
    ],
)
def test_a_board_runs_programs_of_one_target(targets: tuple[Target, Target], devices: list[Devices | None], shared: str) -> None:
    """Simulators and farms serve several at a time."""
    groups = tasks_by_target([task(target) for target in targets])
    said = f"asked to measure on {shared} for {targets[0]} and for {targets[1]}; a board runs programs of one target: name one for each"
    with pytest.raises(ArgumentError, match=re.escape(said)) if shared else nullcontext():
        check_shared(groups, devices)


def test_a_key_that_is_no_target() -> None:
    with pytest.raises(TargetError, match="asked for target 7"):
        devices_by_target(NAMES, {7: "a", B: "b"})  # type: ignore[arg-type]
