"""The measuring process, started with the paths of HARNESS and perhaps POOL: JSON lines in, JSON lines out.

It keeps the inputs and expected outputs of the most recent tasks, and forks a child per candidate. The child loads the
shared library, verifies the candidate and times it. The tuning process is separate, so nothing a candidate does can reach it.
"""

import json
import mmap
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Argument
from ansor.measure.call import Call
from ansor.measure.failure import Failure
from ansor.measure.harness import Harness
from ansor.measure.inputs import make_inputs
from ansor.measure.isolate import Report, isolated, limit_memory
from ansor.measure.machine_trouble import KIND
from ansor.measure.protocol import CallData, Message, NoiseRequest, Reply, Request, RunRequest, TaskRequest, arguments_of
from ansor.measure.timing import Stopping, TimingOptions, relative_spread, time_repeats
from ansor.measure.verify import INSENSITIVE, Sensitivity, difference, with_plain
from ansor.support.bfloat16 import is_floating

CHECK_SECONDS = 10.0  # time limit of a child that does nothing
TASKS_KEPT = 4  # tasks whose arrays stay in memory; the runner resends a forgotten one
MOVES = 3  # runs of a reference on slightly changed inputs, to bound its rounding errors
LONG_SECONDS = 10.0  # references that take longer run once: they are large, so their outputs are not near zero by chance
POSITIVE = (0.5, 1.5)  # range of floats if the default inputs give NaN: it suits roots, logarithms, variances and divisors
NOT_FINITE = 0.03  # share of a reference's elements that may be NaN or infinite
Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """Inputs and expected outputs of a task."""

    inputs: Arrays
    expected: Arrays  # empty: not verified
    failure: Failure | None  # why there are no reference outputs
    reduction: int
    rounding: str
    input_scale: float
    moves: dict[str, Sensitivity]  # by output, see `verify`
    threads: int


@dataclass(frozen=True, slots=True)
class _ReferenceOutputs:
    """A reference's outputs, or why there are none."""

    outputs: Arrays
    moves: dict[str, Sensitivity]
    failure: Failure | None


class Worker:
    """Answers requests. `close`: descriptors that candidates must not inherit."""

    def __init__(self, harness: Harness, pool: Path | None, close: tuple[int, ...] = ()) -> None:
        self._harness = harness
        self._pool = pool
        self._close = close
        self._tasks: OrderedDict[str, WorkerTask] = OrderedDict()
        self._flush_buffer: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def answer(self, request: Request) -> Reply:
        """The reply to one request."""
        if request["command"] == "task":
            return self._define(request)
        if request["command"] == "run":
            return self._run(request)
        if request["command"] == "check":
            return _reply(isolated(self._harness, lambda report: None, timeout=CHECK_SECONDS, close=self._close).failure)
        return self._noise(request)

    def _define(self, request: TaskRequest) -> Reply:
        arguments = arguments_of(request["arguments"])
        ranges = dict(request["ranges"])
        dtypes = {argument.name: np.dtype(argument.dtype) for argument in arguments}
        given: Arrays = {name: _of_file(path, dtypes.get(name)) for name, path in request["files"].items()}
        inputs = make_inputs(arguments, seed=request["seed"], ranges=ranges) | given
        found = _ReferenceOutputs({}, {}, None)
        if request["reference"] is not None:
            found = self._reference(request, request["reference"], inputs)
            if _name_of_not_finite(found.outputs):
                ranges = {a.name: POSITIVE for a in arguments if is_floating(np.dtype(a.dtype))} | ranges
                inputs = make_inputs(arguments, seed=request["seed"], ranges=ranges) | given
                found = _meaningful(self._reference(request, request["reference"], inputs))
        floats = [float(np.abs(array).max()) for array in inputs.values() if is_floating(array.dtype) and array.size]
        self._tasks[request["task"]] = WorkerTask(
            inputs, found.outputs, found.failure, request["reduction"], request["rounding"], max(floats, default=1.0), found.moves,
            request["threads"],
        )
        while len(self._tasks) > TASKS_KEPT:
            self._tasks.popitem(last=False)
        return _reply(found.failure)

    def _reference(self, request: TaskRequest, call: CallData, inputs: Arrays) -> "_ReferenceOutputs":
        outputs = [argument for argument in arguments_of(call["arguments"]) if argument.role == "output"]
        shared = {argument.name: shared_array(argument) for argument in outputs}
        farthest = {one.name: np.asarray(shared_array(replace(one, dtype="float32")), np.float32) for one in outputs if is_floating(np.dtype(one.dtype))}

        def body(report: Report) -> None:
            loaded = self._load(call, inputs, report)
            if loaded is None:
                return
            seconds = loaded.run(1)
            trespass = loaded.trespass()
            if trespass is not None:
                report({"failure": (trespass.kind, trespass.text)})
                return
            for name, array in shared.items():
                array[...] = loaded.output(name)
            moves = dict.fromkeys(shared, INSENSITIVE)
            for number in range(MOVES if seconds < LONG_SECONDS else 0):
                loaded.move_inputs(number, request["rounding"] or "float32")
                loaded.run(1)
                moves = {name: moves[name].and_of(array, loaded.output(name)) for name, array in shared.items()}
            moves = self._with_plain(request, inputs, shared, moves, report)
            each = {name: one.each for name, one in moves.items() if one.each is not None}
            for name, array in each.items():
                farthest[name][...] = array
            known = {name: one for name, one in moves.items() if one is not INSENSITIVE}
            report({
                "sensitivity": {name: one.usual for name, one in known.items()}, "off": {name: one.off for name, one in known.items()}, "each": list(each),
            })  # fmt: skip

        outcome = isolated(self._harness, body, timeout=request["timeout"], close=self._close)
        if outcome.failure is not None:
            return _ReferenceOutputs({}, {}, Failure("reference", f"the reference failed: {outcome.failure}"))
        nothing: Message = {"sensitivity": {}, "off": {}, "each": []}
        found = next((message for message in outcome.messages if "sensitivity" in message), nothing)
        moves = {
            name: Sensitivity(usual, farthest[name] if name in found["each"] else None, found["off"][name]) for name, usual in found["sensitivity"].items()
        }
        return _ReferenceOutputs(shared, moves, None)

    def _with_plain(self, request: TaskRequest, inputs: Arrays, expected: Arrays, moves: dict[str, Sensitivity], report: Report) -> dict[str, Sensitivity]:
        """Add what the reference's plain program finds to the moves, if it has one."""
        loaded = None if request["plain"] is None else self._load(request["plain"], inputs, report)
        if loaded is None:
            return moves
        loaded.run(1)
        return {name: with_plain(one, expected[name], loaded.output(name), request["reduction"]) for name, one in moves.items()}

    def _load(self, call: CallData, inputs: Arrays, report: Report, wall: bool = True) -> Call | None:
        try:
            loaded = Call(self._harness, call, inputs, self._pool, wall)
        except (OSError, AttributeError) as error:
            report({"failure": ("load", str(error))})
            return None
        report({"buffers": loaded.buffers()})
        return loaded

    def _run(self, request: RunRequest) -> Reply:
        task = self._tasks.get(request["task"])
        if task is None:
            return {**_reply(None), "unknown_task": True}
        self._tasks.move_to_end(request["task"])
        if task.failure is not None:
            return _reply(task.failure)
        options = _options(request)
        flush = self._flusher(options.flush_bytes)
        tolerance = request["call"]["tolerance"]

        def body(report: Report) -> None:
            loaded = self._load(request["call"], task.inputs, report, wall=task.threads > 1)
            if loaded is None:
                return
            limit_memory(options.memory_bytes)
            self._harness.spoil_stack()
            first_seconds = loaded.run(1)
            failure = _mistake(loaded, task, tolerance)
            if failure is not None:
                report({"failure": (failure.kind, failure.text)})
                return
            outputs = {name: loaded.output(name).copy() for name in task.expected}
            timing = time_repeats(
                loaded.run, options, first_seconds=first_seconds, best_seconds=request["best_seconds"], flush=flush, before_second=loaded.forget
            )
            failure = _later_mistake(loaded, task, outputs, tolerance)
            if failure is not None:
                report({"failure": (failure.kind, f"after repeated calls: {failure.text}")})
                return
            report({"seconds": list(timing.seconds), "cut_short": timing.cut_short})

        outcome = isolated(self._harness, body, timeout=options.timeout_seconds, close=self._close)
        if options.cooldown_seconds:
            time.sleep(options.cooldown_seconds)
        if outcome.failure is not None:
            return _reply(outcome.failure)
        timed: Message = next(message for message in outcome.messages if "seconds" in message)
        return {"seconds": timed["seconds"], "cut_short": timed["cut_short"], "failure": None}

    def _flusher(self, size: int) -> Callable[[], None]:
        if not size:
            return lambda: None
        if self._flush_buffer.size < size:
            self._flush_buffer = np.zeros(size, dtype=np.uint8)
        address = self._flush_buffer.ctypes.data
        return lambda: self._harness.flush(address, size)

    def _noise(self, request: NoiseRequest) -> Reply:
        length = 1_000_000
        self._harness.spin(length)
        seconds = [self._harness.spin(length) for _ in range(request["repeat"])]
        return {"seconds": [relative_spread(seconds)], "cut_short": False, "failure": None}


def _of_file(path: str, dtype: np.dtype[Any] | None) -> NDArray[np.generic]:
    """Load a saved array. NumPy files store bfloat16 as raw bytes, without its dtype."""
    found: NDArray[np.generic] = np.load(path, allow_pickle=False)
    return found.view(dtype) if found.dtype.kind == "V" and dtype is not None else found


def _name_of_not_finite(outputs: Arrays) -> str:
    """The first output with too many non-finite elements, '' if there is none."""
    return next((name for name, array in outputs.items() if array.size and np.mean(~np.isfinite(array)) > NOT_FINITE), "")


def _meaningful(found: _ReferenceOutputs) -> _ReferenceOutputs:
    """Replace a reference that verifies nothing with a failure. NaN is never compared; infinities are (a mask has some), but alone they are not enough."""
    for name, array in found.outputs.items():
        missing, infinite = float(np.mean(np.isnan(array))), float(np.mean(np.isinf(array)))
        if array.size and (missing > NOT_FINITE or missing + infinite == 1):
            text = (
                f"output {name!r} is NaN in {missing:.0%} and infinite in {infinite:.0%} of its elements, for floats from -1 to 1 and from 0.5 to 1.5: "
                "no result can be verified; change the declaration so that it is finite there"
            )
            return _ReferenceOutputs({}, {}, Failure("reference", text))
    return found


def _mistake(call: Call, task: WorkerTask, tolerance: float) -> Failure | None:
    trespass = call.trespass()
    if trespass is not None:
        return trespass
    for name, expected in task.expected.items():
        text = difference(
            name, call.output(name), expected, reduction=task.reduction, rounding=task.rounding, input_scale=task.input_scale,
            moves=task.moves.get(name, INSENSITIVE), stated=tolerance,
        )  # fmt: skip
        if text:
            return Failure("wrong_answer", text)
    return None


def _later_mistake(call: Call, task: WorkerTask, first: Arrays, tolerance: float) -> Failure | None:
    """Verify again after repeated calls: threads may race, and a second call may add to the first. Comparing bytes is cheap and nearly always enough."""
    if all(np.array_equal(call.output(name).reshape(-1).view(np.uint8), array.reshape(-1).view(np.uint8)) for name, array in first.items()):
        return call.trespass()
    return _mistake(call, task, tolerance)


def shared_array(argument: Argument) -> NDArray[np.generic]:
    """An array that a child fills and this process reads."""
    dtype = np.dtype(argument.dtype)
    room = mmap.mmap(-1, max(1, argument.physical_size * dtype.itemsize))
    return np.frombuffer(room, dtype=dtype, count=argument.physical_size).reshape(argument.shape)


def _options(request: RunRequest) -> TimingOptions:
    given = dict(request["options"])
    stopping = given.pop("stopping")
    assert isinstance(stopping, Mapping)
    return TimingOptions(**_of_types(TimingOptions(), given), stopping=Stopping(**_of_types(Stopping(), stopping)))


def _of_types(defaults: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert numbers back to their types: JSON has only one, and counts must be int."""
    return {name: type(getattr(defaults, name))(value) for name, value in given.items()}


def _reply(failure: Failure | None) -> Reply:
    return {"seconds": [], "cut_short": False, "failure": None if failure is None else (failure.kind, failure.text)}


def _made(harness: Path, pool: Path | None, answers: int) -> tuple[Worker | None, Failure | None]:
    """A worker, or why it could not be started."""
    try:
        return Worker(Harness(harness), pool, close=(answers,)), None
    except (OSError, AttributeError) as error:
        return None, Failure(KIND, f"the helper library {harness} does not load: {error}")


def _answer(worker: Worker, request: Request) -> Reply:
    """The reply. A system error in this process, outside the children that run programs, is the machine's failure, not a program's."""
    try:
        return worker.answer(request)
    except (OSError, MemoryError) as error:
        return _reply(Failure(KIND, str(error) or "out of memory"))


def main() -> None:
    """Answer requests from standard input until it ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # other output must not mix with the answers
    pool = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    worker, broken = _made(Path(sys.argv[1]), pool, answers)
    for line in sys.stdin.buffer:
        reply = _answer(worker, cast(Request, json.loads(line))) if worker is not None else _reply(broken)
        try:
            os.write(answers, json.dumps(reply).encode() + b"\n")
        except BrokenPipeError:  # the tuning process is gone
            return
