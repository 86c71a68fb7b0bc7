"""Networks on two sides: bytes, synchronisations, and what is copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ansor
from ansor.errors import AnsorError, ArgumentError, ArgumentTypeError, ModelError, TargetError
from ansor.integer.compiling import compiled
from ansor.integer.from_onnx import from_onnx
from ansor.integer.from_torch import from_torch
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Convolution, MaxPool, Reshape, Table, Window
from ansor.integer.reference import run
from ansor.offload.annotation import Names, between
from ansor.offload.build import ByCost, Rates, build, measured_seconds
from ansor.offload.program import PlacedNetwork, Running
from ansor.run.keywords import RunOptions
from ansor.targets.base import parse_target
from ansor.vta.configuration import CORE_32, DEFAULT
from ansor.vta.runtime.driver import Driver
from ansor.vta.runtime.opencl import OpenclDriver
from ansor.vta.runtime.operator_queue import Queue, QueueCounts, Reason
from ansor.vta.runtime.simulators import CycleDriver, FunctionalDriver
from ansor.zoo.resnet import BasicBlock, ResNet, resnet18
from ansor.zoo.weights import images, settled
from tests.integer.models import quantised_file, small
from tests.integer.networks import inputs_of
from tests.offload.networks import residual, turned
from tests.opencl import need_opencl

pytestmark = [pytest.mark.compiler, pytest.mark.torch]


def opencl() -> Driver:
    need_opencl()
    return OpenclDriver(DEFAULT)


DRIVERS: dict[str, Callable[[], Driver]] = {"random order": lambda: FunctionalDriver(seed=5), "cycles": CycleDriver, "opencl": opencl}


def checked(placed: PlacedNetwork, driver: Driver | None = None, *, wait: bool = False, times: int = 2) -> QueueCounts:
    """What running it so often did, each time with the bytes of the reference."""
    running = Running(placed, Queue(driver or FunctionalDriver(seed=1)))
    for seed in range(times):
        inputs = inputs_of(placed.network, seed)
        right, found = run(placed.network, inputs), running.run(inputs, wait=wait)
        for name in placed.network.outputs:
            np.testing.assert_array_equal(found[name], right[name])
    counts = running.queue.counts
    for name in placed.annotation.device:
        np.testing.assert_array_equal(running.read(name), right[name], err_msg=name)
    running.close()
    return counts


@pytest.fixture(scope="module")
def block() -> PlacedNetwork:
    return build(residual())


@pytest.fixture(scope="module")
def network() -> IntegerNetwork:
    return from_torch(resnet18(), [images(32)[0]], "resnet18", powers_of_two=True)


@pytest.fixture(scope="module")
def placed(network: IntegerNetwork) -> PlacedNetwork:
    return build(network)


def test_a_residual_block_runs_with_one_synchronisation(block: PlacedNetwork) -> None:
    assert str(block).splitlines() == [
        "host    stem = convolution(x) 3x3 padding (1, 1, 1, 1)", "stem -> device",
        "device  body1 = convolution(stem) 3x3 padding (1, 1, 1, 1)", "device  body2 = convolution(body1) 3x3 padding (1, 1, 1, 1)",
        "device  beside = convolution(stem) 1x1", "device  sum = add(body2, beside)", "device  pool = maxpool(sum) 8x8",
        "pool -> host", "host    flat = reshape(pool)", "host    last = dense(flat)",
    ]  # fmt: skip
    counts = checked(block)
    assert (counts.operators, counts.synchronisations, counts.runs[Reason.READ]) == (2 * 5, 2, 2)
    assert counts.transfers["reads"].count == 2 and counts.transfers["instructions"].count == 2


@pytest.mark.parametrize("core", ["32", "64", "batch=1", "batch=2"])
def test_other_cores(core: str) -> None:
    made = build(residual(), f"vta -core={core}")
    assert made.annotation.device == {"body1", "body2", "beside", "sum", "pool"}
    program = made.compiled["sum"].program
    assert program is not None
    checked(made, FunctionalDriver(program.configuration, seed=2), times=1)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_whole_resnet18_runs_with_one_synchronisation(placed: PlacedNetwork, driver: str) -> None:
    counts = checked(placed, DRIVERS[driver](), times=1)
    assert {one.kind for phase in placed.phases if not phase.on_device for one in phase.operators} == {"convolution", "reshape", "dense"}
    assert len(placed.copies) == 2 and counts.synchronisations == 1 and counts.operators >= 28


@pytest.mark.parametrize("unsigned", [False, True], ids=["int8", "uint8"])
def test_a_resnet18_of_a_quantiser_with_any_scales_and_zero_points(unsigned: bool, tmp_path: Path) -> None:
    model = settled(lambda: ResNet(BasicBlock, (2, 2, 2, 2), 10, 16))
    network = from_onnx(quantised_file(model, tmp_path, unsigned=unsigned, shape=(1, 3, 32, 32)))
    made = build(network)
    assert {one.kind for phase in made.phases if not phase.on_device for one in phase.operators} == {"convolution", "reshape", "dense"}
    assert {len(one.rescale.multipliers) for one in network.operators if isinstance(one, Convolution)} == {16, 32, 64, 128}
    counts = checked(made, DRIVERS["opencl" if unsigned else "random order"](), times=1)
    assert counts.synchronisations == 1 and counts.operators == 29


def test_waiting_for_each_operator_takes_far_more(placed: PlacedNetwork) -> None:
    lazy, waiting = (checked(placed, FunctionalDriver(), wait=wait, times=1) for wait in (False, True))
    assert waiting.synchronisations == lazy.operators >= 10 * lazy.synchronisations
    assert waiting.transfers["instructions"].count >= 10 * lazy.transfers["instructions"].count
    assert waiting.transfers["reads"] == lazy.transfers["reads"] and waiting.transfers["writes"] == lazy.transfers["writes"]


def test_swapping_the_arguments_of_additions_changes_nothing() -> None:
    network = from_torch(settled(lambda: ResNet(BasicBlock, (1, 1, 1), 10, 16)), [images(32)[0]], "resnet", powers_of_two=True)
    placed, other = build(network), build(turned(network))
    assert other.annotation == placed.annotation and other.copies == placed.copies
    by_cost = [build(one, place=ByCost(Rates(host_macs=1e6))) for one in (network, turned(network))]
    assert by_cost[0].annotation == by_cost[1].annotation and by_cost[0].annotation.device and by_cost[0].copies == by_cost[1].copies
    counts = [checked(one, FunctionalDriver(), times=1) for one in (placed, other)]
    assert counts[0].transfers["writes"] == counts[1].transfers["writes"] and counts[0].transfers["reads"] == counts[1].transfers["reads"]


def test_an_operator_that_no_core_has_splits_the_middle() -> None:
    network = residual()
    operators = [replace(one, inputs=("function",)) if one.output == "body2" else one for one in network.operators]
    operators.insert(2, Table("function", ("body1",), np.arange(-128, 128)[::-1].astype(np.int8)))
    tensors = {**network.tensors, "function": replace(network.tensors["body1"], name="function")}
    made = build(replace(network, operators=tuple(operators), tensors=tensors).checked())
    assert made.annotation.refused == {"function": "a core has no table"}
    assert made.copies == (("stem", True), ("body1", False), ("function", True), ("pool", False))
    assert checked(made, times=1).synchronisations == 2


def test_names_of_what_is_on_the_device_stay_there() -> None:
    """A flattened image of one place is its channels, however many names it has."""
    network = residual()
    operators = [replace(one, inputs=("points",)) if one.output == "flat" else one for one in network.operators]
    operators.insert(-2, Reshape("points", ("pool",), (1, 24, 1, 1)))
    tensors = {**network.tensors, "points": replace(network.tensors["pool"], name="points", shape=(1, 24, 1, 1), axes=())}
    named = replace(network, operators=tuple(operators), tensors=tensors).checked()
    made = build(named, place=lambda whole: between(whole, "body1", "last"))
    assert {"points", "flat", "last"} < made.annotation.device and made.copies == (("stem", True), ("last", False))
    assert checked(made).synchronisations == 2
    read = replace(named, operators=(*operators, MaxPool("more", ("points",), Window((2, 1)))))
    read = replace(read, outputs=("last", "more"), tensors={**tensors, "more": replace(tensors["points"], name="more", shape=(1, 23, 1, 1))}).checked()
    apart = build(read, place=lambda whole: frozenset(one.output for one in whole.operators))
    assert "points" not in apart.annotation.device and "more" in apart.annotation.device
    checked(apart, times=1)


def test_what_was_measured_of_c() -> None:
    asked = RunOptions.of({"trials": 0})
    with asked.audience.reporter(parse_target("cpu -threads=1")) as reporter:
        code = compiled(residual(), parse_target("cpu -threads=1"), asked, reporter)
    assert measured_seconds(code) == {}
    tuned = replace(code, kernels=tuple(replace(kernel, cost=0.5) for kernel in code.kernels))
    assert measured_seconds(tuned) == dict.fromkeys(("stem", "body1", "body2", "beside", "pool", "last"), 0.5) | {"sum": 0.0}


def test_by_cost() -> None:
    network = residual()
    slow_bus, slow_core = Rates(transfer=1.0), Rates(core_hertz=1.0)
    assert build(network, place=ByCost(slow_bus)).annotation.device == build(network, place=ByCost(slow_core)).annotation.device == frozenset()
    everything = build(network, place=ByCost(Rates(host_macs=1e3)))
    assert everything.annotation.device == {one.output for one in network.operators}
    assert checked(everything, times=1).synchronisations == 1
    measured = dict.fromkeys(network.tensors, 0.0)
    assert build(network, place=ByCost(Rates(host_macs=1e3), measured)).annotation.device == frozenset()


def test_between_names_and_c_on_the_host() -> None:
    made = build(residual(), place=lambda network: between(network, "body2", "sum"), host="cpu -threads=1")
    assert made.annotation.device == {"body2", "beside", "sum"}
    assert made.copies == (("stem", True), ("body1", True), ("sum", False))
    assert checked(made, times=2).synchronisations == 2


def test_programs_are_tuned_and_recorded(tmp_path: Path) -> None:
    def body2(network: IntegerNetwork) -> Names:
        return between(network, "body2", "body2")

    records, tuned = tmp_path / "vta.json", list[PlacedNetwork]()
    for trials in (2, 0):
        tuned.append(build(residual(), place=body2, asked={"trials": trials, "records": records}))
        assert len(records.read_text().splitlines()) >= 2
    assert tuned[0].compiled["body2"].cycles() == tuned[1].compiled["body2"].cycles() > 0
    checked(tuned[0], times=1)


def test_a_core_alone_runs_no_network() -> None:
    with pytest.raises(TargetError, match="^asked to compile a network for vta -core=default alone; a core runs only its middle, a host the rest"):
        ansor.compile_int8(residual(), (), "vta")


def test_inputs_that_do_not_fit(block: PlacedNetwork) -> None:
    running = Running(block, Queue(FunctionalDriver()))
    with pytest.raises(ArgumentError, match="^asked to run residual with nothing as x; give int8"):
        running.run({})
    inputs = inputs_of(block.network, 0)
    (name,) = inputs
    with pytest.raises(ArgumentError, match="^asked to run residual with more, which is not one of its inputs; they are "):
        running.run({**inputs, "more": inputs[name]})
    with pytest.raises(ArgumentError, match="^asked to run residual with a list as .*; give int8"):
        running.run({name: inputs[name].tolist()})
    with pytest.raises(ArgumentError, match="^asked to run residual with an ndarray; give a dict of arrays"):
        running.run(inputs[name])


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"target": "cpu -threads=1"}, TargetError, "asked to run a part of a network on cpu .*, which is not a core; give one such as 'vta"),
        ({"host": "vta"}, TargetError, "asked for the host's part of a network as C for vta .*, whose programs do not run here; give host='cpu'"),
        ({"place": "middle"}, ArgumentError, "asked to build a network with place='middle'; give a function of the network"),
        ({"place": ByCost}, ArgumentError, "asked to build a network with place=<class .*; give a function of the network .* or ByCost()"),
        ({"place": lambda network: None}, ArgumentError, "asked to build residual with a place that returns None; it has to return the names"),
        ({"place": lambda network: {"stem", "nothing"}}, ModelError, "asked to run nothing of residual on a device, but it has no operator nothing"),
        ({"asked": {"trial": 4}}, ArgumentTypeError, r"asked build for trial=4, which it does not take \(did you mean trials\?\)"),
        ({"asked": 4}, ArgumentError, "asked to build a network with asked=4; give a dict such as"),
    ],
    ids=["target", "host", "word", "class", "none", "unknown", "option", "number"],
)
def test_what_cannot_be_meant(options: Mapping[str, Any], kind: type[AnsorError], says: str) -> None:
    with pytest.raises(kind, match=f"^{says}"):
        build(residual(), **options)


def test_a_network_is_opened_on_a_queue_of_its_core(block: PlacedNetwork) -> None:
    with pytest.raises(ArgumentError, match=r"^asked for Running\(PlacedNetwork, FunctionalDriver\); give what ansor.offload.build made, and a Queue"):
        Running(block, FunctionalDriver())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="^asked to run residual, which was built for VTA 1x16x16.*, on VTA 1x32x32.*: give the driver the same core$"):
        Running(block, Queue(FunctionalDriver(CORE_32)))


def test_a_file_is_read(tmp_path: Path) -> None:
    file = quantised_file(small(), tmp_path)
    assert str(build(file)) == str(build(from_onnx(file)))
