"""How C writes types, literals and functions: the dialect of generated code, as data.

C99 with GNU vector extensions, which gcc and clang-compatible compilers share. Helpers are emitted only where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

C_TYPES = {
    "float32": "float", "float64": "double", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "int32": "int",
    "int64": "long long", "bool": "unsigned char", "uint16": "unsigned short",
}
SHORT = {"float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "u8", "uint16": "u16"}
BYTES = {"float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8, "bool": 1, "uint16": 2}
WRAPPING = {"int8": "uint8", "int16": "uint16"}  # what narrow signed numbers are computed as in vectors, which C does not widen to int
MASK = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}

FUNCTIONS = {
    "exp": "exp", "log": "log", "log2": "log2", "sqrt": "sqrt", "tanh": "tanh", "erf": "erf", "sin": "sin", "cos": "cos", "floor": "floor",
    "ceil": "ceil", "round": "rint", "trunc": "trunc", "fabs": "fabs", "pow": "pow",
}
INLINE_FUNCTIONS = {"sigmoid": "1 / (1 + exp{f}(-x))", "rsqrt": "1 / sqrt{f}(x)"}

PRELUDE = """\
#include <math.h>

#if defined(__clang__)
#define ANSOR_PRAGMA(text) _Pragma(#text)
#define ANSOR_UNROLL(n) ANSOR_PRAGMA(clang loop unroll_count(n))
#elif defined(__GNUC__)
#define ANSOR_PRAGMA(text) _Pragma(#text)
#define ANSOR_UNROLL(n) ANSOR_PRAGMA(GCC unroll n)
#else
#define ANSOR_UNROLL(n)
#endif

typedef void (*ansor_parallel_for_t)(void *pool, void (*body)(void *, long, long), void *ctx, long n);
"""


def literal(value: float | int | bool, dtype: str) -> str:
    """A constant of `dtype`."""
    if dtype == "bool":
        return "1" if value else "0"
    if not dtype.startswith("float"):
        return _integer(int(value), dtype)
    with np.errstate(over="ignore"):
        rounded = np.dtype(dtype).type(value)  # first: a number beyond float32 is infinite there
    if np.isnan(rounded):
        return "NAN"
    if np.isinf(rounded):
        return "INFINITY" if rounded > 0 else "(-INFINITY)"
    plain = 1e-5 <= abs(rounded) < 1e16 or rounded == 0
    text = np.format_float_positional(rounded, trim="0") if plain else np.format_float_scientific(rounded, trim="0")
    text += "f" if dtype == "float32" else ""
    return f"({text})" if text.startswith("-") else text


def _integer(value: int, dtype: str) -> str:
    if dtype == "int64":
        return f"({value + 1}LL - 1)" if value == -(2**63) else f"({value}LL)" if value < 0 else f"{value}LL"
    if value == -(2**31):
        return "(-2147483647 - 1)"
    return f"({value})" if value < 0 else str(value)


def vector_type(dtype: str, lanes: int) -> str:
    """`f32x16`: 16 lanes of float32."""
    return f"{SHORT[dtype]}x{lanes}"


@dataclass
class Helpers:
    """The typedefs and small functions a translation unit needs, collected while its body is written."""

    types: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)

    def vector(self, dtype: str, lanes: int) -> str:
        """The name of a vector type; loads and stores through it need only element alignment."""
        name = vector_type(dtype, lanes)
        size = BYTES[dtype] * lanes
        self.types.setdefault(name, f"typedef {C_TYPES[dtype]} {name} __attribute__((vector_size({size}), aligned({BYTES[dtype]}), may_alias));")
        return name

    def wrapping(self, op: str, dtype: str, lanes: int, a: str, b: str) -> str:
        """C text of `a op b` for two vectors of a dtype in WRAPPING."""
        unsigned = self.vector(WRAPPING[dtype], lanes)
        return f"({self.vector(dtype, lanes)})(({unsigned}){a} {op} ({unsigned}){b})"

    def extreme(self, op: str, dtype: str, lanes: int) -> str:
        """The name of min or max for scalars (lanes 1) or vectors. A NaN in either operand is kept, as in NumPy and PyTorch."""
        compare = "a < b" if op == "max" else "b < a"
        if dtype.startswith("float"):
            compare = f"({compare}) | (b != b)"
        if lanes == 1:
            name = f"{op}_{SHORT[dtype]}"
            kind = C_TYPES[dtype]
            self.functions.setdefault(name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return {compare} ? b : a; }}")
            return name
        kind = self.vector(dtype, lanes)
        name = f"{op}_{kind}"
        select = self.select(dtype, lanes)
        self.functions.setdefault(name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return {select}({compare}, b, a); }}")
        return name

    def select(self, dtype: str, lanes: int) -> str:
        """The name of lane-wise choice by a mask of all ones or zeros."""
        kind = self.vector(dtype, lanes)
        mask = self.vector(MASK[BYTES[dtype]], lanes)
        name = f"select_{kind}"
        self.functions.setdefault(
            name, f"static inline {kind} {name}({mask} mask, {kind} a, {kind} b) {{ return ({kind})((mask & ({mask})a) | (~mask & ({mask})b)); }}"
        )
        return name

    def call(self, name: str, dtype: str, lanes: int) -> str:
        """The C name of a mathematical function."""
        suffix = "f" if dtype == "float32" else ""
        scalar = FUNCTIONS.get(name, name) + suffix
        if name in INLINE_FUNCTIONS:
            scalar = f"{name}_{SHORT[dtype]}"
            body, kind = INLINE_FUNCTIONS[name].format(f=suffix), C_TYPES[dtype]
            self.functions.setdefault(scalar, f"static inline {kind} {scalar}({kind} x) {{ return {body}; }}")
        if lanes == 1:
            return scalar
        return self._lanewise(scalar, self.vector(dtype, lanes), lanes, 2 if name == "pow" else 1)

    def _lanewise(self, scalar: str, kind: str, lanes: int, arity: int) -> str:
        name = f"{scalar}_{kind}"
        parameters = ", ".join(f"{kind} {p}" for p in "xy"[:arity])
        arguments = ", ".join(f"{p}[l]" for p in "xy"[:arity])
        self.functions.setdefault(
            name, f"static inline {kind} {name}({parameters}) {{ for (int l = 0; l < {lanes}; ++l) x[l] = {scalar}({arguments}); return x; }}"
        )
        return name

    def floor_division(self, op: str) -> str:
        """The name of floor division or modulo of possibly negative integers."""
        name = f"ansor_{op}"
        body = "(a % b != 0 && (a < 0) != (b < 0)) ? a / b - 1 : a / b" if op == "floordiv" else "(a % b != 0 && (a < 0) != (b < 0)) ? a % b + b : a % b"
        self.functions.setdefault(name, f"static inline long {name}(long a, long b) {{ return {body}; }}")
        return name

    def text(self) -> str:
        """All definitions, types first."""
        return "\n".join([*self.types.values(), *self.functions.values()])
