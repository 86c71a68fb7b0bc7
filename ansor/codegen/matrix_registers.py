"""Matrix registers in C: the macros of an instruction that multiplies blocks, and the shapes of registers that it is told beforehand.

A shape is 64 bytes, as processors with AMX load it: palette 1, then the bytes of a row of each register as 16-bit numbers, then their rows. Loading one takes
as long as several products, so a function loads one at its beginning, and others only around tiles that are cut. Intel, 64 and IA-32 Architectures Software
Developer's Manual, volume 1, chapter 18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ansor.codegen.dialect import C_TYPES, Helpers
from ansor.codegen.tree import Code
from ansor.ir.intrinsics import Intrinsic
from ansor.support.bfloat16 import BFLOAT16

ROW_BYTES = 64
"""Bytes of a row of a register: sixteen results, or a group of `b` for each of them, or the groups of one row of `a`."""

Shape = dict[int, tuple[int, int]]
"""(rows, bytes of a row) of each register that is used."""

ALLOWED = """\
/* Linux gives a process matrix registers if it asks for them, by arch_prctl (158) with ARCH_REQ_XCOMP_PERM (0x1023) and XFEATURE_XTILEDATA (18). */
#if defined(__AMX_TILE__) && defined(__linux__) && defined(__x86_64__)
#define ANSOR_REFUSED "ansor: Linux refused this process the matrix registers of AMX; build the program with -mattr=-amx-int8,-amx-bf16\\n"
static inline long ansor_system(long n, long a, long b, long c) {ask}
static inline void ansor_allow_tiles(void) {allow}
#else
#define ansor_allow_tiles()
#endif"""

_ASK = '{ __asm__ volatile("syscall" : "+a"(n) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory"); return n; }'
_ALLOW = (
    "{ static int asked; if (asked) return; asked = 1; if (!ansor_system(158, 0x1023, 18, 0)) return; "
    "ansor_system(1, 2, (long)ANSOR_REFUSED, sizeof ANSOR_REFUSED - 1); __builtin_trap(); }"
)

# gcc does not know that a register is loaded from memory, and may move stores from before that to after it. It knows that results are stored.
INSTRUCTIONS = """\
#include <{header}>
#define {name}_begin(shape) ansor_allow_tiles(); _tile_loadconfig(shape)
#define {name}_shape(shape) _tile_loadconfig(shape)
#define {name}_zero(t) _tile_zero(t)
#define {name}_load(t, place, step) do {{ __asm__ volatile("" ::: "memory"); _tile_loadd(t, place, step); }} while (0)
#define {name}_dot(acc, a, b) {function}(acc, a, b)
#define {name}_store(t, place, step) _tile_stored(t, place, step)
#define {name}_end() _tile_release()"""

PLAIN = """\
#define {name}_begin(shape) unsigned char ansor_tiles[8][16][64]; const unsigned char *ansor_shape = shape
#define {name}_shape(shape) ansor_shape = shape
#define {name}_zero(t) __builtin_memset(ansor_tiles[t], 0, 1024)
#define {name}_load(t, place, step) {name}_moved(ansor_tiles[t], ansor_shape, t, (unsigned char *)(place), step, 1)
#define {name}_dot(acc, a, b) {name}_plain(ansor_tiles[acc], ansor_tiles[a], ansor_tiles[b], ansor_shape[48 + a], ansor_shape[48 + b])
#define {name}_store(t, place, step) {name}_moved(ansor_tiles[t], ansor_shape, t, (unsigned char *)(place), step, 0)
#define {name}_end()
{moved}
{plain}"""

_MOVED = (  # a helper is one line
    "static inline void {name}_moved(unsigned char (*tile)[64], const unsigned char *shape, int t, unsigned char *place, long step, int loads) {{ "
    "for (int r = 0; r < shape[48 + t]; ++r) "
    "if (loads) __builtin_memcpy(tile[r], place + r * step, shape[16 + 2 * t]); else __builtin_memcpy(place + r * step, tile[r], shape[16 + 2 * t]); }}"
)
_PLAIN = (
    "static inline void {name}_plain(unsigned char (*acc)[64], unsigned char (*a)[64], unsigned char (*b)[64], int rows, int groups) {{ "
    "for (int r = 0; r < rows; ++r) for (int g = 0; g < groups; ++g) for (int l = 0; l < 16; ++l) {{ {result} sum; {left} x[{group}]; {right} y[{group}]; "
    "__builtin_memcpy(&sum, acc[r] + 4 * l, 4); __builtin_memcpy(x, a[r] + 4 * g, 4); __builtin_memcpy(y, b[g] + 4 * l, 4); "
    "{sum} __builtin_memcpy(acc[r] + 4 * l, &sum, 4); }} }}"
)
_OF_BYTES = "for (int q = 0; q < 4; ++q) sum = (int)((unsigned)sum + (unsigned)(x[q] * y[q]));"
_OF_BFLOAT16 = (
    "for (int q = 0; q < 2; ++q) { const union { unsigned k; float x; } one = {(unsigned)x[q] << 16}, other = {(unsigned)y[q] << 16}; "
    "sum += one.x * other.x; }"
)


@dataclass
class Registers:
    """The shapes that a function uses, by their names, collected while its body is written.

    macros: the prefix of those that it begins and ends with, which are the same for all instructions on these registers.
    """

    macros: str = ""
    shapes: dict[str, Shape] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """The shape that the function begins with."""
        return next(iter(self.shapes), "")

    def named(self, shape: Shape, macros: str, own: Callable[[str], str]) -> str:
        """The name of the first shape that has these registers. own: makes a name unique."""
        self.macros = macros
        name = next((name for name, known in self.shapes.items() if shape.items() <= known.items()), "")
        if not name:
            name = own(f"shape{len(self.shapes)}")
            self.shapes[name] = shape
        return name

    def around(self, body: Sequence[Code]) -> list[Code]:
        """The statements of a function, with registers at hand if they use any."""
        if not self.shapes:
            return list(body)
        texts = [shape_text(name, shape) for name, shape in self.shapes.items()]
        return [*texts, f"{self.macros}_begin({self.first});", *body, f"{self.macros}_end();"]


def macros(helpers: Helpers, intrinsic: Intrinsic) -> str:
    """The prefix of the instruction's macros, which are plain C if the compiler does not have it for the processor."""
    name = f"ANSOR_{intrinsic.name}"
    left, right = intrinsic.operands
    types = {"result": C_TYPES[intrinsic.result], "left": C_TYPES[left], "right": C_TYPES[right]}
    sums = _PLAIN.format(name=name, group=intrinsic.group, sum=_OF_BFLOAT16 if left == BFLOAT16 else _OF_BYTES, **types)
    instructions = INSTRUCTIONS.format(name=name, header=intrinsic.c.header, function=intrinsic.text(max(intrinsic.lanes)))
    plain = PLAIN.format(name=name, moved=_MOVED.format(name=name), plain=sums)
    helpers.instructions.setdefault("ansor_allow_tiles", ALLOWED.format(ask=_ASK, allow=_ALLOW))
    helpers.instructions.setdefault(name, "\n".join([f"#if {intrinsic.c.macro}", instructions, "#else", plain, "#endif"]))
    return name


def shape_text(name: str, shape: Shape) -> str:
    """The definition of a shape."""
    sizes = [shape.get(register, (0, 0)) for register in range(16)]
    numbers = [1, *[0] * 15, *(part for _, width in sizes for part in (width, 0)), *(rows for rows, _ in sizes)]
    return f"static const unsigned char {name}[64] __attribute__((aligned(64))) = {{{', '.join(map(str, numbers))}}};"
