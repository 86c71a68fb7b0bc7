"""The self-test of a network in C: a small generator makes one input, and the outputs are compared with those of the NumPy reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ansor.integer.c_text import c_name
from ansor.integer.network_code import NetworkCode
from ansor.integer.reference import run

SEED = 0x2545F491
MULTIPLIER, INCREMENT = 1664525, 1013904223
LONGEST = 1024
"""The file contains outputs of up to this many bytes, and an FNV-1a hash of longer ones."""


def made_input(size: int, seed: int) -> tuple[NDArray[np.int8], int]:
    """The top bytes of a linear congruential generator's states, and its last state. The C code has the same generator."""
    found = np.empty(size, np.uint8)
    for place in range(size):
        seed = (seed * MULTIPLIER + INCREMENT) & 0xFFFFFFFF
        found[place] = seed >> 24
    return found.view(np.int8), seed


def fnv1a(data: bytes) -> int:
    """The 32-bit FNV-1a hash."""
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def known_run(program: NetworkCode) -> tuple[dict[str, NDArray[np.int8]], dict[str, NDArray[np.int8]]]:
    """The self-test's inputs, and the reference's outputs for them."""
    network, seed = program.network, SEED
    inputs = {}
    for name in network.inputs:
        tensor = network.tensors[name]
        flat, seed = made_input(tensor.size, seed)
        inputs[name] = flat.reshape(tensor.shape)
    found = run(network, inputs)
    return inputs, {name: found[name] for name in network.outputs}


MAIN = """\
#include <stdio.h>
#include "net.h"

static unsigned char arena[{word}_ARENA_BYTES] __attribute__((aligned({word}_ALIGNMENT)));

int main(void) {{
  int wrong = {name}_selftest(arena);
  if (wrong) printf("{name}: wrong, byte %d of the outputs\\n", wrong - 1);
  else printf("{name}: right\\n");
  return wrong != 0;
}}
"""


def selftest_texts(program: NetworkCode) -> list[tuple[str, str]]:
    """selftest.c, and main.c, which runs the self-test on an operating system and prints the result."""
    network, name = program.network, c_name(program)
    word = name.upper()
    _, outputs = known_run(program)
    arrays, checks, fills = [], [], []
    for number, output in enumerate(network.outputs):
        macro = f"{word}_OUTPUT{'' if len(network.outputs) == 1 else number}"
        array, lines = _check(outputs[output], macro, f"expected{number}")
        arrays += array
        checks += [*lines, f"  before += {macro}_BYTES;"]
    for number in range(len(network.inputs)):
        macro = f"{word}_INPUT{'' if len(network.inputs) == 1 else number}"
        value = f"(signed char)((seed = seed * {MULTIPLIER}u + {INCREMENT}u) >> 24)"
        fills.append(f"  for (long i = 0; i < {macro}_BYTES; ++i) {macro}(arena)[i] = {value};")
    fill = [f"void {name}_selftest_fill(unsigned char *arena) {{", f"  unsigned int seed = {SEED}u;", *fills, "}", ""]
    state = ["  unsigned int hash = 0;", "  long before = 0;"]
    check = [f"int {name}_selftest_check(unsigned char *arena) {{", *state, *checks, "  (void)hash;", "  return 0;", "}", ""]
    steps = (f"  {name}_selftest_fill(arena);", f"  {name}_run(arena);", f"  return {name}_selftest_check(arena);")
    whole = [f"int {name}_selftest(unsigned char *arena) {{", *steps, "}", ""]
    return [("selftest.c", "\n".join(['#include "net.h"', "", *arrays, "", *fill, *check, *whole])), ("main.c", MAIN.format(name=name, word=word))]


def _check(wanted: NDArray[np.int8], macro: str, array: str) -> tuple[list[str], list[str]]:
    """C code that compares an output: declarations, then statements."""
    data = wanted.tobytes()
    if len(data) <= LONGEST:
        numbers = ", ".join(map(str, wanted.reshape(-1).tolist()))
        return ([f"static const signed char {array}[{len(data)}] = {{{numbers}}};"],
                [f"  for (long i = 0; i < {macro}_BYTES; ++i) if ({macro}(arena)[i] != {array}[i]) return (int)(before + i + 1);"])  # fmt: skip
    return ([], ["  hash = 2166136261u;",
                 f"  for (long i = 0; i < {macro}_BYTES; ++i) hash = (hash ^ (unsigned char){macro}(arena)[i]) * 16777619u;",
                 f"  if (hash != {fnv1a(data)}u) return (int)(before + 1);"])  # fmt: skip
