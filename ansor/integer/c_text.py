"""Writes an integer network as C files: free-standing C99 with GNU vectors, which needs only a compiler, no library and no heap."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ansor.codegen.c_arrays import declared, defined
from ansor.codegen.exported import LOOPS
from ansor.codegen.image.toolchain import ImageToolchain
from ansor.codegen.source import CSource
from ansor.integer.network import IntegerTensor
from ansor.integer.network_code import Call, NetworkCode, NetworkKernel
from ansor.integer.operators import Operator
from ansor.ir.dag import c_identifier
from ansor.support.text import counted

TEST = """\
[ "$1" = test ] || exit 0
$CC $CFLAGS -I. main.c lib{name}.a -o selftest
$RUN ./selftest
"""
KERNELS = "kernels"
"""The folder of kernels."""


def c_name(program: NetworkCode) -> str:
    """The prefix of the network's C names."""
    return c_identifier(program.network.name)


def header_text(program: NetworkCode) -> str:
    """net.h: sizes, the offsets and quantisation of inputs and outputs, and the entry points."""
    network, name = program.network, c_name(program)
    word = name.upper()
    lines = [f"/* {network.name} for {program.target}: {counted(len(program.calls), 'layer')}, {network.macs} multiplications."]
    lines += [f" * RAM: {program.arena_bytes} bytes of arena, {program.stack_bytes} of local buffers on the stack."]
    lines += [f" * Flash: {program.constant_bytes} bytes of constants, and the code."]
    lines += [f" * The caller computes {', '.join(network.left_out)} of the output." for _ in network.left_out[:1]]
    lines += [" */", f"#ifndef ANSOR_{word}_H", f"#define ANSOR_{word}_H", ""]
    lines += [f"#define {word}_ARENA_BYTES {program.arena_bytes}", f"#define {word}_ALIGNMENT {program.target.alignment}", ""]
    for role, names in (("INPUT", network.inputs), ("OUTPUT", network.outputs)):
        for number, tensor in enumerate(names):
            suffix = "" if len(names) == 1 else str(number)
            lines += [*_tensor_lines(program, network.tensors[tensor], f"{word}_{role}{suffix}"), ""]
    lines += ["/* Optional macro: the name of a function that is called after each layer, with the layer's number from 0. */", f"#ifdef {word}_AFTER"]
    lines += [f"void {word}_AFTER(int layer);", "#endif", ""]
    lines += ["/* Fill the inputs in the arena, run, and read the outputs from it. The arena has the alignment above, and keeps no state between runs. */"]
    lines += [f"void {name}_run(unsigned char *arena);", *_parallel_lines(program), ""]
    lines += ["/* Returns 0 if the outputs for a known input are correct, else the position, from 1, of the first wrong byte. A long output is compared by a"]
    lines += [" * hash: the position is then that of its first byte. */"]
    lines += [f"int {name}_selftest(unsigned char *arena);", "", "/* The parts of the self-test: before a run, and after it. */"]
    lines += [f"void {name}_selftest_fill(unsigned char *arena);", f"int {name}_selftest_check(unsigned char *arena);", "", "#endif", ""]
    return "\n".join(lines)


PARALLEL = """
/* The same on several threads: parallel_for(pool, body, ctx, n) calls body(ctx, begin, end) for ranges that together cover 0 to n, on any threads. */
void {name}_run_parallel(unsigned char *arena, {loops});"""
ALONE = """
static void alone(void *pool, void (*body)(void *, long, long), void *ctx, long n) {{
  (void)pool;
  body(ctx, 0, n);
}}

void {name}_run(unsigned char *arena) {{
  {name}_run_parallel(arena, alone, 0);
}}

void {name}_run_parallel(unsigned char *arena, {loops}) {{"""


def is_parallel(program: NetworkCode) -> bool:
    """Whether its kernels run on several threads."""
    return program.target.dialect.pool and program.target.threads > 1


def _parallel_lines(program: NetworkCode) -> list[str]:
    return [PARALLEL.format(name=c_name(program), loops=LOOPS)] if is_parallel(program) else []


def _tensor_lines(program: NetworkCode, tensor: IntegerTensor, word: str) -> list[str]:
    shape = ", ".join(map(str, tensor.shape))
    order = " in the order [N, H, W, C]" if tensor.axes else ""
    offset = ". The model's numbers are unsigned char, 128 greater" if tensor.unsigned else ""
    scale, zero = tensor.quantisation.scale, tensor.quantisation.zero_point
    return [
        f"/* {tensor.name}: signed char[{shape}]{order}; q stands for {scale!r} * (q - {zero}){offset}. */".replace("- -", "+ "),
        f"#define {word}(arena) ((signed char *)(arena) + {program.plan.offsets[tensor.name]})",
        f"#define {word}_BYTES {tensor.size}",
        f"#define {word}_SCALE {scale!r}f",
        f"#define {word}_ZERO_POINT ({zero})",
    ]


def network_text(program: NetworkCode) -> str:
    """net.c: the calls of kernels, with the offsets of their arguments in the arena."""
    name = c_name(program)
    word = name.upper()
    lines = ['#include "net.h"', '#include "weights.h"', ""]
    lines += [f"#ifdef {word}_AFTER", f"#define AFTER(layer) {word}_AFTER(layer)", "#else", "#define AFTER(layer)", "#endif", ""]
    lines += [_prototype(program, one.code) for one in program.kernels]
    lines += [ALONE.format(name=name, loops=LOOPS)] if is_parallel(program) else ["", f"void {name}_run(unsigned char *arena) {{"]
    for step, call in enumerate(program.calls):
        lines += _call_lines(program, step, call)
    return "\n".join([*lines, "}", ""])


def _prototype(program: NetworkCode, code: CSource) -> str:
    pool = ", void (*parallel_for)(void *, void (*)(void *, long, long), void *, long), void *pool" if program.target.dialect.pool else ""
    return f"void {code.entry}(void *const *args, unsigned char *workspace{pool});"


def _call_lines(program: NetworkCode, step: int, call: Call) -> list[str]:
    code = program.kernels[call.kernel].code
    inputs, constants = iter(call.operator.inputs), iter(call.constants)
    places = []
    for one in code.arguments:
        if one.role == "constant":
            places.append(f"(void *){next(constants)}")
        else:
            places.append(f"arena + {program.plan.offsets[next(inputs) if one.role == 'input' else call.operator.output]}")
    rest = "" if not program.target.dialect.pool else ", parallel_for, pool" if is_parallel(program) else ", 0, 0"
    workspace = f"arena + {program.plan.workspaces[step]}" if code.workspace_bytes else "0"
    return [f"  {{ /* {_comment(call.operator)} */", f"    void *const args[] = {{{', '.join(places)}}};", f"    {code.entry}(args, {workspace}{rest});",
            f"    AFTER({step});", "  }"]  # fmt: skip


def _comment(operator: Operator) -> str:
    return f"{operator.output} = {operator}".replace("*/", "* /")


def weights_header(program: NetworkCode) -> str:
    """weights.h: the declarations of the constants."""
    word = f"ANSOR_{c_name(program).upper()}_WEIGHTS_H"
    lines = [f"extern {declared(name, array, program.target.alignment)};" for name, array in program.constants.items()]
    return "\n".join([f"#ifndef {word}", f"#define {word}", "", *lines, "", "#endif", ""])


def weights_text(program: NetworkCode) -> str:
    """weights.c: the constants, in the order in which kernels read them."""
    lines = ['#include "weights.h"']
    for name, array in program.constants.items():
        lines += ["", *defined(name, array, program.target.alignment)]
    return "\n".join([*lines, ""])


def kernel_text(kernel: NetworkKernel) -> str:
    """kernels/NAME.c, without math.h: integer kernels do not need it, and free-standing compilers do not have it."""
    return kernel.code.text.replace("#include <math.h>\n", "", 1)


def build_text(program: NetworkCode) -> str:
    """build.sh: builds with the C compiler that CC names."""
    name, machine = c_name(program), shlex.join(_machine_flags(program))
    compiler = "cc" if program.target.dialect.hosted else "python -m ziglang cc"
    sources = " ".join(("net", "weights", "selftest", *(f"{KERNELS}/{one.code.entry}" for one in program.kernels)))
    return f"""#!/bin/sh
# Builds lib{name}.a: sh build.sh. Also builds and runs its self-test: sh build.sh test.
#
#   CC    a C compiler for {program.target}: gcc or clang ({compiler})        AR    its archiver (ar)
#   MCPU  its option for the processor ({machine})        RUN   prefix to run programs, such as qemu-aarch64 (nothing)
#   CFLAGS  of kernels and network (-O3); -ffreestanding for boards without an operating system
set -e
cd "$(dirname "$0")"
CC=${{CC:-{compiler}}}
AR=${{AR:-ar}}
MCPU=${{MCPU-{shlex.quote(machine)}}}
CFLAGS="${{CFLAGS:--O3}} -std=gnu99 $MCPU"
objects=""
for one in {sources}; do $CC $CFLAGS -I. -c $one.c -o $one.o; objects="$objects $one.o"; done
rm -f lib{name}.a
$AR rcs lib{name}.a $objects
{TEST.format(name=name) if program.target.dialect.hosted else ""}"""


def _machine_flags(program: NetworkCode) -> tuple[str, ...]:
    """The compiler's flags for the processor."""
    mcpu, toolchain = program.target.mcpu, program.target.toolchain()
    if isinstance(toolchain, ImageToolchain):
        core = toolchain.board.core
        return ("-target", core.triple, f"-mcpu={core.mcpu}", *core.options, "-ffreestanding", "-fno-unwind-tables")
    return ("-march=native",) if mcpu == "native" else (f"-march={mcpu}",) if program.target.is_local else (f"-mcpu={mcpu}",)


def files_of(program: NetworkCode, tests: Sequence[tuple[str, str]]) -> dict[str, str]:
    """All files by their paths in the folder; `tests`: those of the self-test."""
    found = {"net.h": header_text(program), "net.c": network_text(program), "weights.h": weights_header(program), "weights.c": weights_text(program)}
    found |= {f"{KERNELS}/{one.code.entry}.c": kernel_text(one) for one in program.kernels}
    return found | dict(tests) | {"build.sh": build_text(program)}
