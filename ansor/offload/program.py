"""A network that runs on host and device: operators of the device go through a queue, and their results stay there until the host reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansor.errors import ArgumentError, ModelError
from ansor.integer.network import IntegerNetwork
from ansor.offload.annotation import Annotation
from ansor.offload.compiling import Compiled
from ansor.offload.forms import on_device
from ansor.offload.host import Int8, Runs
from ansor.offload.phases import Phase
from ansor.support.text import with_article
from ansor.vta.runtime.operator_queue import Buffer, Queue
from ansor.vta.tensors import TensorLayout

TO_DEVICE, TO_HOST = (0, 3, 1, 2), (0, 2, 3, 1)


@dataclass(frozen=True, eq=False)
class PlacedNetwork:
    """A network, the placement of its operators, the phases, and what runs them: programs of the device, and the host's part of each phase."""

    network: IntegerNetwork
    annotation: Annotation
    phases: tuple[Phase, ...]
    compiled: Mapping[str, Compiled]
    hosts: Sequence[Runs | None]

    @property
    def copies(self) -> tuple[tuple[str, bool], ...]:
        """The tensors that move, in order, and whether each moves to the device."""
        return tuple((name, phase.on_device) for phase in self.phases for name in phase.brings)

    def __str__(self) -> str:
        lines = []
        for phase in self.phases:
            side = "device" if phase.on_device else "host"
            lines += [f"{name} -> {side}" for name in phase.brings]
            lines += [f"{side:6}  {one.output} = {one}" for one in phase.operators]
        return "\n".join([*lines, *(f"{name} is on the host: {why}" for name, why in self.annotation.refused.items())])


class Running:
    """A placed network in the memory of a device: weights are written once, and each tensor of the device has a buffer of its own."""

    def __init__(self, placed: PlacedNetwork, queue: Queue) -> None:
        """Raises ArgumentError for anything but a placed network and a queue of its core."""
        _check_opened(placed, queue)
        self.placed, self.queue = placed, queue
        self._constants: dict[str, tuple[Buffer, ...]] = {}
        self._buffers: dict[str, Buffer] = {}
        self._roots: dict[str, str] = {}
        for phase in placed.phases:
            for one in phase.operators if phase.on_device else ():
                self._open(one.output)

    def run(self, inputs: Mapping[str, Int8], *, wait: bool = False) -> dict[str, Int8]:
        """Run on stored inputs; returns the stored outputs. wait: synchronise after each operator, for comparison. Raises ArgumentError for wrong inputs."""
        network = self.placed.network
        _check_names(network, inputs)
        known = {name: _checked(network, name, inputs) for name in network.inputs}
        for phase, host in zip(self.placed.phases, self.placed.hosts, strict=True):
            if phase.on_device:
                for name in phase.brings:
                    self._write(name, known[name])
                self._enqueue(phase, wait)
                continue
            known |= {name: self.read(name) for name in phase.brings}
            known |= host(known) if host is not None else {}
        return {name: known[name] for name in network.outputs}

    def read(self, name: str) -> Int8:
        """The current value, as it is stored, of a tensor that the device made or received."""
        shape, found = self.placed.network.tensors[name].shape, np.asarray(self.queue.read(self._buffers[name]), np.int8)
        root = self._roots.get(name, name)  # a reshaped image of one pixel is stored in the same way
        return _moved(found.reshape(on_device(self.placed.network.tensors[root].shape)), TO_HOST).reshape(shape)

    def close(self) -> None:
        """Free the buffers on the device."""
        for buffer in {*self._buffers.values(), *(one for several in self._constants.values() for one in several)}:
            self.queue.free(buffer)
        self._buffers, self._constants = {}, {}

    def _write(self, name: str, stored: Int8) -> None:
        buffer = self._buffers[name]
        self.queue.write(buffer, _moved(stored, TO_DEVICE).reshape(buffer.layout.array))

    def _enqueue(self, phase: Phase, wait: bool) -> None:
        for one in phase.operators:
            program = self.placed.compiled[one.output].program
            if program is not None:
                inputs = [self._buffers[name] for name in one.inputs]
                self.queue.enqueue(program, [*inputs, *self._constants[one.output], self._buffers[one.output]])
                if wait:
                    self.queue.synchronise()

    def _open(self, output: str) -> None:
        """Allocate buffers for what an operator reads and makes, and write its constants to theirs."""
        made = self.placed.compiled[output]
        if made.program is None:
            (source,) = made.form.operator.inputs
            self._buffers[output], self._roots[output] = self._buffers[source], self._roots.get(source, source)
            return
        inputs, tensors = made.form.operator.inputs, made.program.tensors
        for name, tensor in (*zip(inputs, tensors, strict=False), (output, tensors[-1])):
            if name not in self._buffers:
                self._buffers[name] = self.queue.buffer(tensor.layout)
            _check_layouts(name, self._buffers[name].layout, tensor.layout)
        constants = []
        for tensor in tensors[len(inputs) : -1]:
            constants.append(buffer := self.queue.buffer(tensor.layout))
            self.queue.write(buffer, made.form.constants[tensor.name].reshape(tensor.layout.array))
        self._constants[output] = tuple(constants)


def _checked(network: IntegerNetwork, name: str, inputs: Mapping[str, Int8]) -> Int8:
    wanted, one = network.tensors[name].shape, inputs.get(name)
    if not isinstance(one, np.ndarray) or one.shape != wanted or one.dtype != np.int8:
        given = "nothing" if one is None else f"{one.dtype}{list(one.shape)}" if isinstance(one, np.ndarray) else with_article(type(one).__name__)
        raise ArgumentError(f"asked to run {network.name} with {given} as {name}; give int8{list(wanted)}")
    return one


def _check_opened(placed: PlacedNetwork, queue: Queue) -> None:
    if not isinstance(placed, PlacedNetwork) or not isinstance(queue, Queue):
        given = f"Running({type(placed).__name__}, {type(queue).__name__})"
        raise ArgumentError(f"asked for {given}; give what ansor.offload.build made, and a Queue of a driver, such as Queue(FunctionalDriver())")
    core = next((one.program.configuration for one in placed.compiled.values() if one.program is not None), queue.driver.configuration)
    if core != queue.driver.configuration:
        raise ArgumentError(f"asked to run {placed.network.name}, which was built for {core}, on {queue.driver.configuration}: give the driver the same core")


def _check_names(network: IntegerNetwork, inputs: Mapping[str, Int8]) -> None:
    if not isinstance(inputs, Mapping):
        raise ArgumentError(f"asked to run {network.name} with {with_article(type(inputs).__name__)}; give a dict of arrays: {', '.join(network.inputs)}")
    for name in inputs:
        if name not in network.inputs:
            raise ArgumentError(f"asked to run {network.name} with {name}, which is not one of its inputs; they are {', '.join(network.inputs)}")


def _moved(array: Int8, axes: tuple[int, ...]) -> Int8:
    """Images with their channels moved; others as they are."""
    return np.ascontiguousarray(np.transpose(array, axes)) if array.ndim == 4 else array


def _check_layouts(name: str, held: TensorLayout, wanted: TensorLayout) -> None:
    """Raises ModelError if two operators need a tensor in different layouts. A vector of channels is an image of one pixel; groups are whole blocks."""
    first, second = ((one.array[:2], math.prod(one.array[2:]), one.elements, one.blocks) for one in (held, wanted))
    if first != second:
        raise ModelError(f"asked to keep {name} on the device as {held} for one operator and as {wanted} for another; run one of them on the host")
