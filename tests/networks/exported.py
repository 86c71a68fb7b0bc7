"""Exported networks, built without CMake: by gcc and clang as users build them, and as a library by the embedded compiler."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.graph.network import CompiledNetwork
from ansor.measure.result_memory import aligned_empty
from ansor.networks.network_kernel import NetworkKernel
from tests.c_compilers import STRICT

Array = NDArray[np.generic]
SHIPPED = ("-std=gnu99", "-O2", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")


def threads_of(network: CompiledNetwork) -> int:
    """The most threads that any kernel of a network uses."""
    return max(one.kernel.code.threads for one in network.kernels if isinstance(one, NetworkKernel))


def built(folder: Path, command: Sequence[str]) -> Path:
    """The self-test, with every variant for x86 built for its processors."""
    objects = []
    for place in (folder, *sorted((folder / "kernels").iterdir())):
        if place.name.startswith("arm"):
            continue
        processor = [f"-march={place.name}"] if place.name.startswith(("x86", "native")) else []
        for source in sorted(place.glob("*.c")):
            objects.append(str(source.with_suffix(".o")))
            subprocess.run([*command, *SHIPPED, *STRICT, *processor, "-c", str(source), "-o", objects[-1]], check=True)
    subprocess.run([*command, *objects, "-o", str(folder / "test"), "-lm"], check=True)
    return folder / "test"


class _Variant(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("runs_here", ctypes.CFUNCTYPE(ctypes.c_int)), ("run", ctypes.c_void_p))


class Library:
    """Variants by their names, in this process, built with the flags of every kernel."""

    def __init__(self, folder: Path, isas: Sequence[str]) -> None:
        compiler, objects = find_compiler(), []
        for name in (*isas, "c99", ""):
            flags = CToolchain(compiler, name.replace("-", "_") if name in isas else "native").flags
            for source in sorted((folder / "kernels" / name if name else folder).glob("*.c")):
                if source.name != "selftest.c":
                    objects.append(str(source.with_suffix(".o")))
                    kept = [flag for flag in flags if flag != "-shared"]
                    subprocess.run([*compiler.command, *kept, "-c", str(source), "-o", objects[-1]], check=True)
        subprocess.run([*compiler.command, "-shared", *objects, "-o", str(folder / "net.so"), "-lm"], check=True)
        self._library = ctypes.CDLL(str(folder / "net.so"))
        self._constants = np.fromfile(folder / "constants.bin", np.uint8)
        table = (_Variant * (len(isas) + 2)).in_dll(self._library, "ansor_network_variants")
        self.variants = {one.name.decode(): one for one in table if one.name}

    def outputs(self, name: str, sizes: tuple[int, int], given: Array, wanted: Array) -> Array:
        """A variant's output, at place 0, for one input at place 0; sizes: of the arena and the workspace."""
        arena, workspace = (aligned_empty((size,), "uint8") for size in sizes)
        constants = aligned_empty(self._constants.shape, "uint8")
        constants[...] = self._constants
        arena[: given.nbytes] = np.frombuffer(given.tobytes(), np.uint8)
        run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5)(self.variants[name].run)
        assert run(arena.ctypes.data, constants.ctypes.data, workspace.ctypes.data, None, None) == -1
        return np.asarray(arena[: wanted.nbytes].view(wanted.dtype).reshape(wanted.shape))
