"""The files specific to an exported network: the header, the choice of an instruction set, the constants as an array, CMakeLists.txt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ansor.codegen.exported import CHECKED, FLAGS, march_text, recorded
from ansor.graph.plan import NetworkPlan
from ansor.networks.instruction_sets import InstructionSet
from ansor.networks.plan_code import ARGUMENTS, ENTRY, RUN
from ansor.support.text import listed

if TYPE_CHECKING:
    from ansor.networks.variants import Variant

PROCESSORS = {"": "any processor", "__x86_64__": "x86-64 processors", "__aarch64__": "64-bit ARM processors"}
IN_ROW = 24  # bytes of constants per line


def entry_of(isa: InstructionSet) -> str:
    """The C name of a variant's function."""
    return f"{ENTRY}_{isa.identifier}"


def header(variants: Sequence[Variant], constants: int, embed: bool) -> str:
    """network.h."""
    plan, workspace = variants[0].plan, max(one.plan.room.workspace for one in variants)
    sizes = {"arena": plan.room.arena, "workspace": workspace, "constants": constants}
    lines = [HEADER, *(f"#define ANSOR_NETWORK_{name.upper()}_BYTES {size}" for name, size in sizes.items()), ""]
    for kind, several in (("INPUT", plan.inputs), ("OUTPUT", plan.outputs)):
        for number, one in enumerate(several):
            comment = f"{one.name}: {one.dtype}[{', '.join(map(str, one.shape))}]".replace("*/", "")
            lines.append(f"#define ANSOR_NETWORK_{kind}_{number} ({one.place.memory} + {one.place.offset}) /* {comment} */")
    array = ["extern const unsigned char ansor_network_constants[]; /* in constants.c */", ""] if embed else []
    return "\n".join([*lines, "", RUN, "", *array, VARIANTS])


def chooser(isas: Sequence[InstructionSet]) -> str:
    """network.c: the table of variants, and the function that runs the first one that the processor supports."""
    system = ["#if defined(__aarch64__)", "#include <sys/auxv.h>", "#endif", ""] if any("getauxval" in isa.condition for isa in isas) else []
    lines = ["/* Chooses the variant of the network for this processor. */", "", '#include "network.h"', "", *system]
    lines += _guarded(isas, lambda isa: f"int64_t {entry_of(isa)}({ARGUMENTS});")
    lines += ["", *_guarded(isas, lambda isa: f"static int {isa.identifier}_runs(void) {{ return {isa.condition}; }}")]
    lines += ["", "const ansor_network_variant_t ansor_network_variants[] = {"]
    lines += _guarded(isas, lambda isa: f'    {{"{isa.name}", {isa.identifier}_runs, {entry_of(isa)}}},')
    return "\n".join([*lines, "    {0, 0, 0}", "};", "", CHOICE])


def _guarded(isas: Sequence[InstructionSet], line: Callable[[InstructionSet], str]) -> Iterator[str]:
    """A line for each set; lines for one kind of processor are guarded by the compiler's macro for it."""
    for macro, several in groupby(isas, lambda isa: isa.macro):
        lines = [line(isa) for isa in several]
        yield from [f"#if defined({macro})", *lines, "#endif"] if macro else lines


def constants_text(content: bytes) -> str:
    """constants.c."""
    rows = "\n".join(_rows(content or b"\0"))
    return f'#include "network.h"\n\nconst unsigned char ansor_network_constants[] __attribute__((aligned(64))) = {{\n{rows}\n}};\n'


def _rows(content: bytes) -> Iterator[str]:
    for begin in range(0, len(content), IN_ROW):
        yield "".join(f"{byte}," for byte in content[begin : begin + IN_ROW])


def recorded_places(plan: NetworkPlan, embed: bool) -> str:
    """selftest.h: what selftest.bin holds, in order, and where it goes."""
    lines = ["/* Arrays of selftest.bin: bytes, kind of the elements and bytes of each, and their places. */", ""]
    lines += ["#define EMBEDDED", ""] * embed
    for kind, several in (("INPUT", plan.inputs), ("OUTPUT", plan.outputs)):
        lines.append(recorded(kind, [(one.dtype, one.shape, f"ANSOR_NETWORK_{kind}_{number}") for number, one in enumerate(several)]))
    return "\n".join([*lines, ""])


def cmake(isas: Sequence[InstructionSet], embed: bool) -> str:
    """CMakeLists.txt."""
    own = any(map(_is_own, isas))
    march = [f'set(ANSOR_MARCH {isas[0].name} CACHE STRING "The processor that the kernels were made for, as -march names it")'] if own else []
    variants = [f'ansor_variant({isa.name} "{_processors(isa)}" {f"-march={isa.march}" if isa.march else "-std=c99"})' for isa in isas]
    return CMAKE.format(before="\n".join(march), constants=" constants.c" if embed else "", flags=FLAGS, variants="\n".join(variants))


def readme(isas: Sequence[InstructionSet], embed: bool) -> str:
    """README.md."""
    own = next((isa.name for isa in isas if _is_own(isa)), "")
    rows = ["| `constants.c` | the weights, as the array `ansor_network_constants` |" if embed else
            "| `constants.bin` | the weights: your program reads them into aligned memory |"]  # fmt: skip
    choice = "" if own else " A call runs the best variant that the processor supports."
    march = f"{march_text(own, 'network')}; with CMake that is `-DANSOR_MARCH=`. " if own else ""
    return README.format(
        isas=listed([isa.name for isa in isas]), choice=choice, commands="\n\n".join(_commands(isas, embed)), march=march, rows="\n".join(rows),
        files="`selftest.bin`" if embed else "`selftest.bin` and `constants.bin`", checked=CHECKED,
    )  # fmt: skip


def _commands(isas: Sequence[InstructionSet], embed: bool) -> Iterator[str]:
    """The commands of a compiler without CMake, for each kind of processor that there are sets for."""
    kinds = list(dict.fromkeys(isa.macro for isa in isas if isa.macro)) or [""]
    for kind in kinds:
        lines = [f"On {PROCESSORS[kind]}:", ""] * (len(kinds) > 1)
        for isa in isas:
            if isa.macro in ("", kind):
                march = f"-march={isa.name if _is_own(isa) else isa.march}" if isa.march else "-std=c99"
                lines.append(f"    (cd kernels/{isa.name} && cc {FLAGS} {march} -c *.c)")
        own = " ".join(["selftest.c", "network.c", *(["constants.c"] if embed else []), "kernels/*/*.o"])
        yield "\n".join([*lines, f"    cc -std=c99 {own} -lm -o selftest && ./selftest ."])


def _is_own(isa: InstructionSet) -> bool:
    """Whether it is the processor of a compiled network, which CMake's option may replace."""
    return "ANSOR_MARCH" in isa.march


def _processors(isa: InstructionSet) -> str:
    """A regular expression for CMake's names of the processors that a set may run on."""
    return {"__x86_64__": "^(x86_64|AMD64)$", "__aarch64__": "^(aarch64|arm64)$"}.get(isa.macro, ".")


HEADER = """\
/* A network in C. The caller provides three blocks of memory, each aligned to 64 bytes: an arena, a workspace, and the constants.

   Write the inputs to their places in the arena, call the function, and read the outputs at theirs before the next call: arrays share memory.
   parallel_for(pool, body, ctx, n) calls body(ctx, begin, end) for ranges that together cover 0 to n, on any threads. If it is a null pointer, everything
   runs on the caller's thread. The function returns -1, or the number of the look-up that got an index out of range. */

#ifndef ANSOR_NETWORK_H
#define ANSOR_NETWORK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""

VARIANTS = f"""\
/* Runs the first of the variants below that this processor supports. */
int64_t {ENTRY}({ARGUMENTS});

typedef struct {{
    const char *name; /* of the instruction set */
    int (*runs_here)(void);
    int64_t (*run)({ARGUMENTS});
}} ansor_network_variant_t;

/* Preferred variants come first; an entry without a name ends the list. */
extern const ansor_network_variant_t ansor_network_variants[];

#ifdef __cplusplus
}}
#endif

#endif
"""

CHOICE = f"""\
int64_t {ENTRY}({ARGUMENTS}) {{
    const ansor_network_variant_t *one = ansor_network_variants;
    while (!one->runs_here()) one++; /* the last one runs everywhere */
    return one->run(arena, constants, workspace, parallel_for, pool);
}}
"""

CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(network C)

{before}
add_library(network STATIC network.c{constants})
target_compile_options(network PRIVATE -std=c99 -Wall -Wextra)
target_include_directories(network PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_link_libraries(network PUBLIC m)

# Kernels for one instruction set: a folder, the processors that have it, and further compiler options.
function(ansor_variant name processors)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "${{processors}}")
    file(GLOB kernels ${{CMAKE_CURRENT_SOURCE_DIR}}/kernels/${{name}}/*.c)
    add_library(network_${{name}} OBJECT ${{kernels}})
    target_compile_options(network_${{name}} PRIVATE {flags} -Wall -Wextra ${{ARGN}})
    target_sources(network PRIVATE $<TARGET_OBJECTS:network_${{name}}>)
  endif()
endfunction()
{variants}

add_executable(selftest selftest.c)
target_compile_options(selftest PRIVATE -std=c99 -Wall -Wextra)
target_link_libraries(selftest PRIVATE network)
enable_testing()
add_test(NAME selftest COMMAND selftest ${{CMAKE_CURRENT_SOURCE_DIR}})
"""

README = """\
# A network in C

A network in C for {isas}.{choice}
It needs a C99 compiler with the extensions of gcc and clang, and nothing else. With CMake:

    cmake -B build && cmake --build build && ctest --test-dir build

Without CMake, in this folder:

{commands}

{march}`-ffp-contract=fast` fuses products and sums.

| files | |
|---|---|
| `network.h` | `ansor_network_run`, how it is called, the sizes of its memory, and the places of inputs and outputs |
| `network.c` | chooses the kernels for the processor |
| `kernels/*/*.c` | for each instruction set, the kernels, and in `plan.c` the function that calls them |
{rows}
| `selftest.c`, `selftest.h`, `checks.h`, `selftest.bin` | the self-test, with inputs and the network's outputs for them |

In your own CMake project: `add_subdirectory` with this folder, and `target_link_libraries(app network)`.

`selftest FOLDER` runs every variant that the processor supports. FOLDER is this folder, with {files}, and by default the current one.
{checked}
"""
