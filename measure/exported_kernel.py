"""A kernel as a folder of C that needs no Python: header, code, constants, a self-test with recorded values, CMakeLists.txt and a README."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.c_arrays import BITS, declared, defined, element_type
from ansor.codegen.exported import ALONE, CHECKED, CHECKS, FLAGS, LOOPS, RECORDED, march_text, recorded
from ansor.codegen.pool_library import SOURCE as POOL
from ansor.codegen.source import ALIGNMENT, Argument, CSource
from ansor.errors import MeasureError
from ansor.measure.exported_names import parameter_name
from ansor.measure.inputs import make_inputs
from ansor.measure.worker import POSITIVE
from ansor.support.bfloat16 import is_floating
from ansor.support.safe_files import make_folder, write_whole
from ansor.support.text import counted

Array = NDArray[np.generic]
SELFTEST = Path(__file__).with_name("kernel_selftest.c")
STANDARD = FLAGS.replace("gnu99", "c99")
WARNINGS, STRICT = "-Wall -Wextra", " -pedantic"
HALF = "_Float16"
"""A type that no C99 has, and few compilers know: kernels that use it are built without STRICT."""


def made_values(
    inputs: Sequence[Argument], ranges: Sequence[tuple[str, float, float]], run: Callable[[Mapping[str, Array]], Mapping[str, Array]]
) -> dict[str, Array]:
    """Made-up inputs and the outputs for them, by name. Floats are from -1 to 1; if outputs are then not finite (roots, logarithms), from 0.5 to 1.5."""
    limits = {name: (low, high) for name, low, high in ranges}
    usual = make_inputs(inputs, ranges=limits)
    found = {**usual, **run(usual)}
    if all(np.isfinite(array.astype(np.float64)).all() for array in found.values()):
        return found
    positive = make_inputs(inputs, ranges={one.name: POSITIVE for one in inputs if is_floating(np.dtype(one.dtype))} | limits)
    return {**positive, **run(positive)}


@dataclass(frozen=True)
class ExportedKernel:
    """name: the beginning of all C names; title: the name for people; march: the processor, as -march names it; constants: as the code reads them, by name;
    values: recorded inputs and outputs, by name."""

    name: str
    title: str
    code: CSource
    march: str
    constants: Mapping[str, Array]
    values: Mapping[str, Array]

    @property
    def word(self) -> str:
        """The beginning of its macros."""
        return self.name.upper()

    @property
    def free(self) -> Sequence[Argument]:
        """The arguments that callers give: inputs, then outputs, in the order of the declaration."""
        return [one for role in ("input", "output") for one in self.code.arguments if one.role == role]

    def write(self, folder: Path) -> None:
        """Write all files; existing ones are replaced. Raises MeasureError if the folder cannot be written to."""
        try:
            make_folder(folder)
            for name, content in self.files().items():
                write_whole(folder / name, content)
        except OSError as error:
            text = f"asked to export a kernel to {folder}, which cannot be written to ({error.strerror or error}); name another folder"
            raise MeasureError(text) from error

    def files(self) -> dict[str, bytes]:
        """The content of each file, by name."""
        texts = {f"{self.name}.h": header(self), f"{self.name}.c": text(self), "selftest.h": places(self)}
        texts |= {"CMakeLists.txt": cmake(self), "README.md": readme(self)}
        if self.constants:
            texts[f"{self.name}_constants.c"] = constants_text(self)
        copied = [CHECKS, *([POOL, POOL.with_suffix(".h")] if self.code.threads > 1 else [])]
        values = b"".join(self.values[one.name].tobytes() for one in self.free)
        return {
            **{name: one.encode() for name, one in texts.items()}, **{path.name: path.read_bytes() for path in copied},
            "selftest.c": SELFTEST.read_bytes(), RECORDED: values,
        }  # fmt: skip


def header(kernel: ExportedKernel) -> str:
    """NAME.h."""
    code, word = kernel.code, kernel.word
    rows = [f" *   {one.role:8s} {one.name}: {one.dtype}[{', '.join(map(str, one.shape))}]{_stored(one)}" for one in kernel.free]
    rows += [f" *   built in {one.name}: {one.dtype}[{', '.join(map(str, one.shape))}]" for one in code.arguments if one.role == "constant"]
    parameters = ", ".join([*(f"{_pointer(one)}{parameter_name(one.name)}" for one in kernel.free), "unsigned char *workspace"])
    threads = THREADS.format(threads=code.threads) if code.threads > 1 else ONE_THREAD
    title = kernel.title.replace("*/", "* /")
    return HEADER.format(title=title, rows="\n".join(rows), word=word, name=kernel.name, alignment=ALIGNMENT, workspace=code.workspace_bytes,
                         threads=code.threads, how=threads, parameters=parameters, loops=LOOPS)  # fmt: skip


def _stored(one: Argument) -> str:
    return " (the bits of each number)" if one.dtype in BITS else " (0 or 1)" if one.dtype == "bool" else ""


def _pointer(one: Argument) -> str:
    return f"{'const ' if one.role == 'input' else ''}{element_type(one.dtype)} *"


def text(kernel: ExportedKernel) -> str:
    """NAME.c: the code, whose entry point becomes local, and the function for callers."""
    code, free = kernel.code, kernel.free
    numbers = {one.name: number for number, one in enumerate(free)}
    parameters = ", ".join([*(f"{_pointer(one)}given_{number}" for number, one in enumerate(free)), "unsigned char *workspace"])
    places = [f"(void *){_constant(kernel, one.name)}" if one.role == "constant" else f"(void *)given_{numbers[one.name]}" for one in code.arguments]
    lines = [f"/* {kernel.title.replace('*/', '* /')}: see {kernel.name}.h. */", f'#include "{kernel.name}.h"', "", _local(code)]
    lines += [f"extern {declared(_constant(kernel, name), array, ALIGNMENT)};" for name, array in kernel.constants.items()]
    several = code.threads > 1
    runner = "parallel_for ? parallel_for : ansor_alone" if several else "parallel_for"
    lines += [ALONE.replace("alone", "ansor_alone")] * several
    lines += ["", f"void {kernel.name}_run({parameters}, ansor_parallel_for_t parallel_for, void *pool) {{"]
    lines += [f"    void *const args[] = {{{', '.join(places)}}};", f"    {code.entry}(args, workspace, {runner}, pool);", "}", ""]
    return "\n".join(lines)


def _local(code: CSource) -> str:
    """The code with a local entry point, and without empty braces, which C99 does not have."""
    local = re.sub(rf"^void (?={re.escape(code.entry)}\()", "static void ", code.text, count=1, flags=re.MULTILINE)
    return re.sub(r"(?<=\))\{\}", "{0}", local)


def _constant(kernel: ExportedKernel, name: str) -> str:
    return f"{kernel.name}_constant_{name}"


def constants_text(kernel: ExportedKernel) -> str:
    """NAME_constants.c: the constants in the order in which the code reads them."""
    lines = [f"/* Constants of {kernel.name}.c, in the order in which it reads them. */"]
    if any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in kernel.constants.values()):
        lines += ["", "#include <math.h>"]
    for name, array in kernel.constants.items():
        lines += ["", *defined(_constant(kernel, name), array, ALIGNMENT)]
    return "\n".join([*lines, ""])


def places(kernel: ExportedKernel) -> str:
    """selftest.h: what selftest.bin has, in order, and how the kernel is called."""
    free = kernel.free
    lines = ["/* The kernel, and the arrays of selftest.bin: bytes, kind of the elements and bytes of each, and where the self-test keeps them. */", ""]
    lines += [f'#include "{kernel.name}.h"', *([f'#include "{POOL.stem}.h"'] if kernel.code.threads > 1 else []), ""]
    lines += [f'#define NAME "{kernel.name}"', f"#define THREADS {kernel.word}_THREADS", f"#define WORKSPACE_BYTES {kernel.word}_WORKSPACE_BYTES"]
    lines += [f"#define PLACES {len(free)}", f"#define RUNNER {LOOPS}"]
    for kind in ("INPUT", "OUTPUT"):
        lines.append(recorded(kind, [(one.dtype, one.shape, f"places[{number}]") for number, one in enumerate(free) if one.role == kind.lower()]))
    given = ", ".join(f"({_pointer(one)})places[{number}]" for number, one in enumerate(free))
    return "\n".join([*lines, f"#define CALL {kernel.name}_run({given}, workspace, parallel_for, pool)", ""])


def _sources(kernel: ExportedKernel) -> str:
    return " ".join([f"{kernel.name}.c", *([f"{kernel.name}_constants.c"] if kernel.constants else [])])


def cmake(kernel: ExportedKernel) -> str:
    """CMakeLists.txt."""
    pool = POOL_CMAKE.format(name=kernel.name, file=POOL.name) if kernel.code.threads > 1 else ""
    flags = f"{STANDARD} {WARNINGS}" + ("" if HALF in kernel.code.text else STRICT)
    return CMAKE.format(name=kernel.name, word=kernel.word, march=kernel.march, sources=_sources(kernel), flags=flags, pool=pool)


def readme(kernel: ExportedKernel) -> str:
    """README.md."""
    several, name, sources = kernel.code.threads > 1, kernel.name, _sources(kernel)
    rows = [f"| `{name}.h`, `{name}.c` | the function `{name}_run`, and its documentation |"]
    rows += [f"| `{name}_constants.c` | its constants |"] * bool(kernel.constants)
    rows += [f"| `{POOL.stem}.h`, `{POOL.name}` | threads to run it on, in C11 with POSIX threads; you may use your own instead |"] * several
    rows += [f"| `selftest.c`, `selftest.h`, `checks.h`, `{RECORDED}` | the self-test, with inputs and the kernel's outputs for them |"]
    return README.format(
        title=kernel.title, threads=counted(kernel.code.threads, "thread"), compile=f"cc {STANDARD} -march={kernel.march} -c {sources}",
        pool=f"    cc -O3 -std=c11 -pthread -c {POOL.name}\n" if several else "",
        objects=sources.replace(".c", ".o") + (f" {POOL.stem}.o -pthread" if several else ""),
        rows="\n".join(rows), name=name, march=march_text(kernel.march, "kernel"), checked=CHECKED,
    )  # fmt: skip


HEADER = """\
/* {title}: a kernel in C.
 *
{rows}
 *
 * Arrays are contiguous, and their last index varies fastest. They and the workspace begin at multiples of the alignment below. The workspace has as many
 * bytes as are stated below, of any content; it may be a null pointer if that is 0. An output shares no memory with another array.
 *
{how}
 *
 * The kernel allocates nothing and keeps no state: calls with different outputs and workspaces may run at the same time. */

#ifndef ANSOR_{word}_H
#define ANSOR_{word}_H

#define {word}_ALIGNMENT {alignment}
#define {word}_WORKSPACE_BYTES {workspace}
#define {word}_THREADS {threads}

#ifdef __cplusplus
extern "C" {{
#endif

void {name}_run({parameters},
    {loops});

#ifdef __cplusplus
}}
#endif

#endif
"""

THREADS = """\
 * It was made for {threads} threads: parallel_for(pool, body, ctx, n) has to call body(ctx, begin, end) for ranges that together cover 0 to n, each number
 * once, on any threads, and to return once all calls have. thread_pool.h has such a function. If it is a null pointer, everything runs on the caller's
 * thread. Threads of your own need 1 MiB of stack."""

ONE_THREAD = """\
 * It runs on the caller's thread: parallel_for and pool are not used, and may be null pointers."""

CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project({name} C)

set({word}_MARCH {march} CACHE STRING "The processor that the kernel was made for, as -march names it")
add_library({name} STATIC {sources})
target_compile_options({name} PRIVATE {flags} -march=${{{word}_MARCH}})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_link_libraries({name} PUBLIC m)

add_executable({name}_selftest selftest.c)
target_compile_options({name}_selftest PRIVATE -std=c99 -Wall -Wextra -pedantic)
target_link_libraries({name}_selftest PRIVATE {name})
{pool}enable_testing()
add_test(NAME {name}_selftest COMMAND {name}_selftest ${{CMAKE_CURRENT_SOURCE_DIR}})
"""

POOL_CMAKE = """\

# Threads for kernels; several folders may share them.
if(NOT TARGET ansor_thread_pool)
  find_package(Threads REQUIRED)
  add_library(ansor_thread_pool STATIC {file})
  target_compile_options(ansor_thread_pool PRIVATE -O3 -std=c11 -Wall -Wextra -pedantic)
  target_include_directories(ansor_thread_pool PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
  target_link_libraries(ansor_thread_pool PUBLIC Threads::Threads)
endif()
target_link_libraries({name}_selftest PRIVATE ansor_thread_pool)
"""

README = """\
# {title}

A kernel in C for {threads}. It needs a C99 compiler with the extensions of gcc and clang, and nothing else.

    {compile}
{pool}    cc -std=c99 selftest.c {objects} -lm -o selftest && ./selftest

or `cmake -B build && cmake --build build && ctest --test-dir build`. {march}. Without the option the kernel is slower, or does
not compile, if it uses instructions that not all processors have. `-ffp-contract=fast` fuses products and sums.

| files | |
|---|---|
{rows}

In your own CMake project: `add_subdirectory` with this folder, and `target_link_libraries(app {name})`.

{checked}
"""
