"""A compiled network as a plan: prepared calls as kernel numbers and array offsets, and the constants that they read, each stored once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ModelError
from ansor.graph.plan import ARENA, CONSTANTS, Call, Check, NetworkPlan, Place, PlacedArray, PlannedKernel, Room
from ansor.networks.network_kernel import PreparedCall, Text
from ansor.support.safe_files import digest
from ansor.support.text import counted

if TYPE_CHECKING:
    from ansor.graph.network import CompiledNetwork

ALIGNMENT = 64
LEFT_OUT = "take these operators out of the model"
NAMED = 3  # steps that are named in the error
Array = NDArray[np.generic]


class Constants:
    """The constants that kernels read, at multiples of `ALIGNMENT`. Equal ones are stored once. Mutable: plans add theirs; several may share an instance."""

    def __init__(self) -> None:
        self._contents: dict[str, Place] = {}  # by digest
        self._chunks: list[bytes] = []
        self.size = 0

    @property
    def content(self) -> bytes:
        """The bytes of all constants."""
        return b"".join(self._chunks)

    def place(self, content: bytes) -> Place:
        """The place of a constant with these bytes, which is added unless there is one already."""
        found = digest(content)
        if found not in self._contents:
            self._contents[found] = Place(CONSTANTS, self.size)
            padded = content + bytes(-len(content) % ALIGNMENT)
            self._chunks.append(padded)
            self.size += len(padded)
        return self._contents[found]


class Planning:
    """Makes the `plan` of a network, with its `kernels`, and adds to `constants`. Mutable while it is built, read-only afterwards.

    Raises ModelError for steps that run in PyTorch, and for results that cannot be described without it.
    """

    def __init__(self, network: CompiledNetwork, constants: Constants) -> None:
        check_steps(network)
        self.kernels: list[Text] = []
        self._constants = constants
        self._layout = network.layout()
        self._numbers: dict[int, int] = {}  # id of a kernel -> its number
        self._places: dict[tuple[int, int], Place] = {}  # address and bytes of a constant
        calls = tuple(self._call(step) for _, step in network.steps)
        inputs = tuple(self._placed(name, array) for name, array in self._layout.inputs)
        outputs: list[PlacedArray] = []
        results = self._nested(self._layout.results, outputs)
        planned = tuple(PlannedKernel(kernel.name, kernel.code.entry, kernel.code.threads) for kernel in self.kernels)
        workspace = max((kernel.code.workspace_bytes for kernel in self.kernels), default=0)
        room = Room(self._layout.arena.nbytes, workspace, constants.size)
        self.plan = NetworkPlan(planned, calls, inputs, tuple(outputs), results, room)

    def _call(self, step: object) -> Call:
        from ansor.graph.network import CheckedStep

        checks = step.checks if isinstance(step, CheckedStep) else ()
        prepared = step.step if isinstance(step, CheckedStep) else step
        assert isinstance(prepared, PreparedCall)  # `check_steps` has refused the others
        looks = tuple(Check(one.name, one.indices.dtype.name, one.indices.size, self._place(one.indices), one.rows) for one in checks)
        number = self._numbers.setdefault(id(prepared.kernel), len(self.kernels))
        if number == len(self.kernels):
            self.kernels.append(prepared.kernel)
        return Call(number, tuple(self._place(array) for array in prepared.arrays), looks)

    def _placed(self, name: str, array: Array | None) -> PlacedArray:
        if array is None:
            raise ModelError(f"asked to save a network whose {name} is of a dtype that NumPy lacks; use another dtype for it")
        return PlacedArray(name, array.dtype.name, array.shape, self._place(array))

    def _place(self, array: Array) -> Place:
        """The place of an array: in the arena, or among the constants, to which it is added."""
        if array.nbytes == 0:
            return Place(ARENA, 0)
        address, arena = array.ctypes.data, self._layout.arena
        if arena.ctypes.data <= address < arena.ctypes.data + arena.nbytes:
            return Place(ARENA, address - arena.ctypes.data)
        key = address, array.nbytes
        if key not in self._places:
            self._places[key] = self._constants.place(array.tobytes())
        return self._places[key]

    def _nested(self, value: object, outputs: list[PlacedArray]) -> Mapping[str, object]:
        """How results are nested; the arrays among them are added to the outputs. Objects become dicts of their contents."""
        from ansor.graph.opened import Opened

        if isinstance(value, np.ndarray):
            outputs.append(self._placed(f"result {len(outputs)}", value))
            return {"array": len(outputs) - 1}
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"value": value}
        held = value.parts if isinstance(value, Opened) else value
        if isinstance(held, Mapping) and all(isinstance(key, str) for key in held):
            return {"dict": {key: self._nested(one, outputs) for key, one in held.items()}}
        if isinstance(held, Sequence):
            return {"tuple" if isinstance(held, tuple) else "list": [self._nested(one, outputs) for one in held]}
        raise ModelError(f"asked to save a network that returns a {type(value).__name__}, which cannot be made without the model's own code; let the model "
                         "return tensors, or tuples, lists and string-keyed dicts of them")  # fmt: skip


def check_steps(network: CompiledNetwork) -> None:
    """Raises ModelError if a step runs in PyTorch."""
    from ansor.graph.network import CheckedStep

    bare = [(name, step.step if isinstance(step, CheckedStep) else step) for name, step in network.steps]
    names = [name for name, step in bare if not isinstance(step, PreparedCall)]
    if not names:
        return
    told = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    operators = [name.removeprefix("torch ") for name in names if name.startswith("torch ")]
    cure = _cure({network.torch_calls.get(one, "") for one in operators}) if operators else "compile it with library=False"
    run = "runs" if len(names) == 1 else "run"
    raise ModelError(f"asked to save or export a network, but {counted(len(names), 'step')} of {len(network.steps)} {run} in PyTorch ({told}); {cure}")


def _cure(reasons: Iterable[str]) -> str:
    """What to do about operators that run in PyTorch for these reasons. The advice of a reason follows its semicolon."""
    cures = {reason.partition("; ")[2] or LEFT_OUT for reason in reasons}
    return f"{', and '.join(sorted(cures))} (docs/networks.md)"
