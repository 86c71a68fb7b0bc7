"""A network as a folder of C that needs no Python: the plan and the kernels, a header, the constants, a self-test with recorded values, and CMakeLists.txt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.toolchain import Compiler
from ansor.errors import MeasureError
from ansor.graph.plan import NetworkPlan, PlacedArray
from ansor.networks.plan_code import RUN, SIGNATURE, plan_text
from ansor.networks.planning import Planning
from ansor.networks.saved_network import CONSTANTS_FILE, KERNELS, PLAN_TEXT
from ansor.support.safe_files import make_folder, write_whole
from ansor.targets.base import Target

if TYPE_CHECKING:
    from ansor.graph.export import CallArguments
    from ansor.graph.network import CompiledNetwork

RECORDED = "selftest.bin"
SELFTEST = Path(__file__).with_name("selftest.c")
Array = NDArray[np.generic]


def export(network: CompiledNetwork, folder: Path, target: Target, examples: CallArguments | None) -> None:
    """Write the folder; the self-test has the network's results for its example inputs. Raises ModelError where the network cannot run without PyTorch,
    and MeasureError when the folder cannot be written to."""
    planning = Planning(network)
    plan = planning.plan
    gcc = Compiler("gcc", ("gcc",), "gcc").code_flags("")
    files = {
        PLAN_TEXT: plan_text(plan).encode(), "network.h": header(plan).encode(), CONSTANTS_FILE: planning.constants,
        "selftest.c": SELFTEST.read_bytes(), "selftest.h": recorded_places(plan).encode(), RECORDED: _recorded(network, examples),
        "CMakeLists.txt": CMAKE.format(flags=" ".join(gcc), mcpu=target.mcpu.replace("_", "-") or "native").encode(),
        **{f"{KERNELS}/{number}.c": kernel.source.encode() for number, kernel in enumerate(planning.kernels)},
    }  # fmt: skip
    try:
        make_folder(folder / KERNELS)
        for name, content in files.items():
            write_whole(folder / name, content)
    except OSError as error:
        raise MeasureError(f"asked to export a network to {folder}, which cannot be written to ({error.strerror or error}); name another folder") from error


def header(plan: NetworkPlan) -> str:
    """network.h."""
    room = plan.room
    lines = [HEADER, *(f"#define ANSOR_NETWORK_{name.upper()}_BYTES {getattr(room, name)}" for name in ("arena", "workspace", "constants")), ""]
    for kind, several in (("INPUT", plan.inputs), ("OUTPUT", plan.outputs)):
        for number, one in enumerate(several):
            comment = f"{one.name}: {one.dtype}[{', '.join(map(str, one.shape))}]".replace("*/", "")
            lines.append(f"#define ANSOR_NETWORK_{kind}_{number} ({one.place.memory} + {one.place.offset}) /* {comment} */")
    return "\n".join([*lines, "", RUN, "", f"{SIGNATURE};", "", "#endif", ""])


def recorded_places(plan: NetworkPlan) -> str:
    """selftest.h: what selftest.bin holds, in order, and where it goes."""
    lines = ["/* Arrays of selftest.bin: bytes, kind of the elements and bytes of each, and their places. */", ""]
    for kind, several in (("INPUT", plan.inputs), ("OUTPUT", plan.outputs)):
        rows = " ".join(f"X({_bytes(one)}, '{np.dtype(one.dtype).kind}', {np.dtype(one.dtype).itemsize}, ANSOR_NETWORK_{kind}_{number})"
                        for number, one in enumerate(several))  # fmt: skip
        lines.append(f"#define {kind}S {rows}")
    return "\n".join([*lines, ""])


def _bytes(one: PlacedArray) -> int:
    return int(np.prod(one.shape, dtype=np.int64)) * np.dtype(one.dtype).itemsize


def _recorded(network: CompiledNetwork, examples: CallArguments | None) -> bytes:
    """The example inputs, and what the network makes of them."""
    with network.lock:
        network.fill(examples)
        layout = network.layout()
        given = [array.tobytes() for _, array in layout.inputs if array is not None]
        for _, step in network.steps:
            step()
        return b"".join([*given, *(array.tobytes() for array in leaves(layout.results))])


def leaves(results: object) -> Sequence[Array]:
    """The arrays among nested results, in the order of a plan's outputs."""
    from ansor.graph.opened import Opened

    held = results.parts if isinstance(results, Opened) else results
    if isinstance(held, np.ndarray):
        return [held]
    several = held.values() if hasattr(held, "values") else held if isinstance(held, (tuple, list)) else ()
    return [array for one in several for array in leaves(one)]


HEADER = """\
/* A network in C. The caller brings three pieces of memory, each at a multiple of 64 bytes: an arena, a workspace, and the bytes of constants.bin.

   Write the inputs to their places in the arena, call the function, and read the outputs at theirs, before the next call: places are shared.
   parallel_for(pool, body, ctx, n) calls body(ctx, begin, end) for ranges that together cover 0 to n, on any threads; with a null pointer all runs on
   the caller's. It returns -1, or the number of the look-up that was given an index out of range. */

#ifndef ANSOR_NETWORK_H
#define ANSOR_NETWORK_H

#include <stdint.h>
"""

CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(network C)

set(ANSOR_MARCH {mcpu} CACHE STRING "The processor that the kernels were made for, as -march names it")
file(GLOB KERNELS ${{CMAKE_CURRENT_SOURCE_DIR}}/kernels/*.c)
add_library(network STATIC network.c ${{KERNELS}})
target_compile_options(network PRIVATE {flags} -march=${{ANSOR_MARCH}} -Wall -Wextra)
target_include_directories(network PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_link_libraries(network PUBLIC m)

add_executable(selftest selftest.c)
target_compile_options(selftest PRIVATE -std=c99 -Wall -Wextra)
target_link_libraries(selftest PRIVATE network)
enable_testing()
add_test(NAME selftest COMMAND selftest ${{CMAKE_CURRENT_SOURCE_DIR}})
"""
