"""Places the middle of an int8 network on a VTA core: chooses the operators, their programs, the phases, and what the host runs.

    placed = build(network, "vta", place=lambda network: between(network, "relu_3", "add_7"))
    running = Running(placed, Queue(FunctionalDriver()))
    running.run({"x": image})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ansor.errors import ArgumentError, ModelError, TargetError
from ansor.integer.network import IntegerNetwork
from ansor.integer.network_code import NetworkCode
from ansor.integer.operators import Convolution, Operator, Reshape
from ansor.integer.reading import network_of
from ansor.offload.annotation import Annotation, Names, Seconds, cheapest, middle
from ansor.offload.compiling import Compiled, compiled, forms_of
from ansor.offload.host import Runs, as_c, by_reference
from ansor.offload.phases import phases_of
from ansor.offload.program import PlacedNetwork
from ansor.run.keywords import ModelKeywords, RunOptions
from ansor.run.reporter import Reporter
from ansor.targets.base import Target, parse_target
from ansor.tasks.arguments import check_names

Marked = Callable[[IntegerNetwork], Names]


@dataclass(frozen=True)
class Rates:
    """Rates to estimate the times that were not measured: the core's clock, the host's multiplications and bytes per second, the bytes per second between
    the two, and the overhead in seconds of each transfer and each run. Each tensor that the host reads counts as one run."""

    core_hertz: float = 1e8
    host_macs: float = 2e9
    host_bytes: float = 2e9
    bus_bytes: float = 8e8
    transfer: float = 2e-5
    run: float = 1e-4


@dataclass(frozen=True)
class ByCost:
    """Place operators so that they and their transfers take the least time. host: measured seconds of operators (`measured_seconds`); others are estimated."""

    rates: Rates = Rates()
    host: Mapping[str, float] | None = None


def build(
    network: object, target: str | Target = "vta", place: Marked | ByCost = middle, asked: RunOptions | ModelKeywords | None = None,
    host: str | Target | None = None,
) -> PlacedNetwork:
    """Place a network on a core and a host, and compile it.

    network: an integer network, or a model that `ansor.integer.reading.network_of` reads without calibration, such as the path of an ONNX file in QDQ format.
    place: a function that chooses the operators for the device, or `ByCost()`; those that a core cannot compute run on the host, and `annotation.refused` says
    why. asked: options such as trials and records for programs of the core, by the names that `auto_schedule` takes; without them the estimate picks programs.
    host: the target that the host's operators are compiled for, such as `cpu`; None for the NumPy reference. Raises TargetError for a target that is not a
    core, ArgumentError and ModelError for a place that does not name operators of the network, and whatever compiling raises.
    """
    core, ours, asked = parse_target(target), None if host is None else parse_target(host), _options(asked)
    _check_sides(core, ours)
    asked.check_devices([core])
    network = network_of(network)
    wanted = _wanted(network, place)
    asked.check_place(written=asked.measures)
    with asked.reporter(core) as reporter:
        forms, refused = forms_of(network, wanted)
        programs, unfit = compiled(forms, core, asked, reporter)
        there = cheapest(network, seconds_of(network, programs, place)) if isinstance(place, ByCost) else frozenset(programs)
        there = _without_names_alone(network, there)
        phases = phases_of(network, there)
        annotation = Annotation(there, {**refused, **unfit})
        hosts = [None if phase.on_device or not phase.operators else _host(network, phase.operators, ours, reporter) for phase in phases]
    return PlacedNetwork(network, annotation, phases, {name: programs[name] for name in there}, hosts)


def _options(asked: RunOptions | ModelKeywords | None) -> RunOptions:
    """The options of the run, checked."""
    if isinstance(asked, RunOptions):
        return asked
    if asked is not None and not isinstance(asked, Mapping):
        raise ArgumentError(f"asked to build a network with asked={asked!r:.80}; give a dict such as {{'trials': 64, 'records': 'vta.json'}}, or RunOptions")
    given = asked if asked is not None else ModelKeywords(trials=0)
    check_names("build", given, ModelKeywords)
    return RunOptions.of(given, given.get("model"))


def _check_sides(core: Target, host: Target | None) -> None:
    """Raises TargetError unless the targets are a core, and a host that runs here."""
    if core.kind != "vta":
        raise TargetError(f"asked to run a part of a network on {core}, which is not a core; give one such as 'vta -core=32', and host='cpu' for C on the host")
    if host is not None and not host.is_local:
        raise TargetError(f"asked for the host's part of a network as C for {host}, whose programs do not run here; give host='cpu', or None for NumPy")


def _wanted(network: IntegerNetwork, place: Marked | ByCost) -> Names:
    """The operators that `place` asks for on the device."""
    made = frozenset(one.output for one in network.operators)
    if isinstance(place, ByCost):
        return made
    if isinstance(place, type) or not callable(place):
        takes = "a function of the network that gives names of operators, such as ansor.offload.annotation.middle, or ByCost()"
        raise ArgumentError(f"asked to build a network with place={place!r:.80}; give {takes}")
    found = place(network)
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ArgumentError(f"asked to build {network.name} with a place that returns {found!r:.80}; it has to return the names of operators")
    wanted = frozenset(found)
    for name in sorted(map(str, wanted - made))[:1]:
        raise ModelError(f"asked to run {name} of {network.name} on a device, but it has no operator {name}; print the network to see the names")
    return wanted


def seconds_of(network: IntegerNetwork, programs: Mapping[str, Compiled], place: ByCost) -> Seconds:
    """The times of operators and transfers: from the core's cycle model on the device, measured or estimated elsewhere."""
    rates, sizes = place.rates, {name: tensor.size for name, tensor in network.tensors.items()}
    host = {}
    for one in network.operators:
        moved = 0 if isinstance(one, Reshape) else sizes[one.output] + sum(sizes[name] for name in one.inputs)
        host[one.output] = one.macs(network.tensors[one.output].shape) / rates.host_macs + moved / rates.host_bytes
    host.update(place.host or {})
    device = {name: made.cycles() / rates.core_hertz for name, made in programs.items()}
    written = {name: rates.transfer + size / rates.bus_bytes for name, size in sizes.items()}
    return Seconds(host, device, written, {name: rates.run + time for name, time in written.items()})


def _without_names_alone(network: IntegerNetwork, there: Names) -> Names:
    """The operators on the device without some reshapes: those of a host tensor, those that nothing on the device reads, and those that the device would read
    as an image with rows or columns, as all elements are channels there."""
    kept = set(there)
    for one in reversed(network.operators):
        if isinstance(one, Reshape):
            readers = [reader for reader in network.operators if one.output in reader.inputs and reader.output in kept]
            others = [reader for reader in readers if not isinstance(reader, Reshape)]
            if not readers or others and len(one.to) == 4 and one.to[1:3] != (1, 1):
                kept.discard(one.output)
    for one in network.operators:
        if isinstance(one, Reshape) and one.inputs[0] not in kept:
            kept.discard(one.output)
    return frozenset(kept)


def measured_seconds(code: NetworkCode) -> dict[str, float]:
    """The measured seconds of a network's operators as C on the host, for `ByCost.host`. Only operators whose kernels were tuned, or found in records."""
    costs = [(call.operator, code.kernels[call.kernel].cost) for call in code.calls]
    found: dict[str, float] = {}
    for operator, cost in costs:
        if cost is not None and isinstance(operator, Convolution) and operator.added is not None:
            found |= {operator.added.inputs[0]: cost, operator.output: 0.0}  # a placed network has them as two operators
        elif cost is not None:
            found[operator.output] = cost
    return found


def _host(network: IntegerNetwork, operators: tuple[Operator, ...], host: Target | None, reporter: Reporter) -> Runs:
    return by_reference(network, operators) if host is None else as_c(network, operators, host, RunOptions.of({"trials": 0}), reporter)
