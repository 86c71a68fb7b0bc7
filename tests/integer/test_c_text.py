from __future__ import annotations

import numpy as np

from ansor.codegen.source import Argument, CSource
from ansor.integer.c_text import header_text, network_text, weights_text
from ansor.integer.network import IntegerNetwork, IntegerTensor, Quantisation
from ansor.integer.network_code import Call, NetworkCode, NetworkKernel
from ansor.integer.operators import Reshape, Table
from ansor.integer.plan import arena_of
from ansor.integer.selftest import fnv1a, made_input, selftest_texts
from ansor.targets.base import parse_target

HEADER = """\
/* tiny for cpu -mcpu=x86-64 -threads=1: 1 layer, 0 multiplications.
 * RAM: 64 bytes of arena, 48 of local buffers on the stack.
 * Flash: 256 bytes of constants, and the code.
 * The caller computes softmax of the output.
 */
#ifndef ANSOR_TINY_H
#define ANSOR_TINY_H

#define TINY_ARENA_BYTES 64
#define TINY_ALIGNMENT 64

/* x: signed char[1, 2, 3, 1] in the order [N, H, W, C]; q stands for 0.5 * (q + 3). The model's numbers are unsigned char, 128 greater. */
#define TINY_INPUT(arena) ((signed char *)(arena) + 0)
#define TINY_INPUT_BYTES 6
#define TINY_INPUT_SCALE 0.5f
#define TINY_INPUT_ZERO_POINT (-3)

/* y: signed char[1, 6]; q stands for 0.25 * (q - 1). */
#define TINY_OUTPUT(arena) ((signed char *)(arena) + 0)
#define TINY_OUTPUT_BYTES 6
#define TINY_OUTPUT_SCALE 0.25f
#define TINY_OUTPUT_ZERO_POINT (1)

/* Optional macro: the name of a function that is called after each layer, with the layer's number from 0. */
#ifdef TINY_AFTER
void TINY_AFTER(int layer);
#endif

/* Fill the inputs in the arena, run, and read the outputs from it. The arena has the alignment above, and keeps no state between runs. */
void tiny_run(unsigned char *arena);

/* Returns 0 if the outputs for a known input are correct, else the position, from 1, of the first wrong byte. A long output is compared by a
 * hash: the position is then that of its first byte. */
int tiny_selftest(unsigned char *arena);

/* The parts of the self-test: before a run, and after it. */
void tiny_selftest_fill(unsigned char *arena);
int tiny_selftest_check(unsigned char *arena);

#endif
"""
NETWORK = """\
#include "net.h"
#include "weights.h"

#ifdef TINY_AFTER
#define AFTER(layer) TINY_AFTER(layer)
#else
#define AFTER(layer)
#endif

void tiny_table(void *const *args, unsigned char *workspace, void (*parallel_for)(void *, void (*)(void *, long, long), void *, long), void *pool);

void tiny_run(unsigned char *arena) {
  { /* t = table(x) */
    void *const args[] = {arena + 0, (void *)tiny_0_values, arena + 0};
    tiny_table(args, 0, 0, 0);
    AFTER(0);
  }
}
"""


def _code() -> NetworkCode:
    tensors = {
        "x": IntegerTensor("x", (1, 2, 3, 1), Quantisation(0.5, -3), (0, 2, 3, 1), True),
        "t": IntegerTensor("t", (1, 2, 3, 1), Quantisation(0.25, 1)),
        "y": IntegerTensor("y", (1, 6), Quantisation(0.25, 1)),
    }
    values = np.arange(127, -129, -1).astype(np.int8)
    operators = (Table("t", ("x",), values), Reshape("y", ("t",), (1, 6)))
    network = IntegerNetwork("tiny", ("x",), ("y",), tensors, operators, ("softmax",)).checked()
    arguments = (Argument("data", (1, 2, 3, 1), "int8", "input"), Argument("values", (256,), "int8", "constant"), Argument("r", (1, 2, 3, 1), "int8", "output"))
    kernel = NetworkKernel(CSource("", "tiny_table", arguments), 48)
    target = parse_target("cpu -mcpu=x86-64 -threads=1")
    return NetworkCode(network, target, (kernel,), (Call(operators[0], 0, ("tiny_0_values",)),), arena_of(network, [0], 64), {"tiny_0_values": values})


def test_the_header_says_what_a_caller_has_to_know() -> None:
    assert header_text(_code()) == HEADER


def test_the_network_is_calls_with_places_in_the_arena() -> None:
    assert network_text(_code()) == NETWORK


def test_weights_are_arrays_of_numbers() -> None:
    text = weights_text(_code())
    assert text.startswith('#include "weights.h"\n\nconst signed char tiny_0_values[256] __attribute__((aligned(64))) = {\n  127, 126, ')
    assert text.endswith(" -127, -128,\n};\n") and max(map(len, text.splitlines())) <= 160


def test_the_self_test_has_the_bytes_of_the_reference() -> None:
    texts = dict(selftest_texts(_code()))
    given, _ = made_input(6, 0x2545F491)
    expected = ", ".join(str(-1 - int(one)) for one in given)
    assert f"expected0[6] = {{{expected}}};" in texts["selftest.c"] and "tiny_selftest(arena)" in texts["main.c"]
    assert fnv1a(b"") == 2166136261 and fnv1a(b"a") == 0xE40C292C
