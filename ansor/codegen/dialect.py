"""How C writes types, literals and functions: the dialect of generated code, as data.

C99 with GNU vector extensions, shared by gcc and clang-compatible compilers. Helpers are emitted only if used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansor.codegen import small_math, vector_math
from ansor.codegen.source import ALIGNMENT
from ansor.ir.value_ranges import Ranges
from ansor.support.bfloat16 import BFLOAT16, bits_of
from ansor.te.dtypes import BYTES

C_TYPES = {
    "float32": "float", "float64": "double", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "int32": "int",
    "int64": "long long", "float16": "_Float16", "bool": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
    "bfloat16": "unsigned short",
}
SHORT = {"float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "u8", "uint16": "u16",
         "uint32": "u32", "uint64": "u64", "bfloat16": "u16", "float16": "f16"}
WRAPPING = {"int8": "uint8", "int16": "uint16"}  # types for narrow signed numbers in vectors, which C does not widen to int
UNSIGNED = {"int8": "uint8", "uint8": "uint8", "int16": "uint16", "int32": "uint32", "int64": "uint64"}  # which wrap, and shift all bits
MASK = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}

FUNCTIONS = {
    "exp": "exp", "log": "log", "log2": "log2", "sqrt": "sqrt", "tanh": "tanh", "erf": "erf", "sin": "sin", "cos": "cos", "floor": "floor",
    "ceil": "ceil", "round": "rint", "round_half_away": "round", "trunc": "trunc", "fabs": "fabs", "pow": "pow", "fmod": "fmod",
    **{name: name for name in ("exp2", "log10", "log1p", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "hypot", "copysign",
                               "nextafter")},
}
PAIRS = ("pow", "fmod", "atan2", "hypot", "copysign", "nextafter")  # functions of two operands
INLINE_FUNCTIONS = {"exp10": "pow{f}(10, x)", "sigmoid": "1 / (1 + exp{f}(-x))", "rsqrt": "1 / sqrt{f}(x)"}

MATHEMATICS = "#include <math.h>\n"
# Without a library: compiler builtins, or functions linked with every program. The others are in `small_math`.
_KNOWN = ("fabs", "copysign", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "sqrt", "floor", "ceil", "trunc", "round", "fmod")
BUILT_IN = "".join(
    ["#define INFINITY __builtin_inff()\n", '#define NAN __builtin_nanf("")\n']
    + [f"#define {name}{f} __builtin_{name}{f}\n" for name in _KNOWN for f in ("f", "")]
)
INCLUDES = """
#if defined(__clang__)
#define ANSOR_PRAGMA(text) _Pragma(#text)
#define ANSOR_UNROLL(n) ANSOR_PRAGMA(clang loop unroll_count(n))
#pragma clang diagnostic ignored "-Wpass-failed" /* unrolling is asked for, not insisted on */
#elif defined(__GNUC__)
#define ANSOR_PRAGMA(text) _Pragma(#text)
#define ANSOR_UNROLL(n) ANSOR_PRAGMA(GCC unroll n)
#else
#define ANSOR_UNROLL(n)
#endif
"""
POOL = "\ntypedef void (*ansor_parallel_for_t)(void *pool, void (*body)(void *, long, long), void *ctx, long n);\n"
PRELUDE = MATHEMATICS + INCLUDES + POOL
"""For systems with a library and threads."""
APART = """
/* Loop nests are functions that are not inlined, and called as if from another file; what they share is inlined, however often it is used.
   So each is the same code if it is compiled alone. */
#define ANSOR_APART __attribute__((noinline, used))
#define ANSOR_INLINE __attribute__((always_inline))
"""


# For programs with float16, before anything else that mentions it.
HALF = """\
#if !defined(__FLT16_MANT_DIG__)
#error this compiler has no float16 (_Float16) for this processor: use clang or gcc 12 and later, or declare float32
#endif
"""

# Any constant permutation of two vectors' lanes. clang has one function for it; gcc had another before it adopted clang's.
SHUFFLE = """\
#if defined(__clang__)
#define ANSOR_SHUFFLE(kind, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ANSOR_SHUFFLE(kind, a, b, ...) __builtin_shuffle(a, b, (kind){__VA_ARGS__})
#endif"""
# For functions of vectors: compilers warn that passing them depends on the processor.
PASSING = '#pragma GCC diagnostic ignored "-Wpsabi" /* the functions here are called from here alone */'
NEXT_HALF = (
    "static inline _Float16 nextafter_f16(_Float16 x, _Float16 y) { union { _Float16 x; short k; } next = {x}; if (x != x || y != y) return x + y; "
    "if (x == y) return y; if (x == 0) { next.k = 1; return y > 0 ? next.x : -next.x; } next.k += (x < y) == (x > 0) ? 1 : -1; return next.x; }"
)
QUAD = 4  # lanes between which processors move elements cheaply


@dataclass(frozen=True)
class Dialect:
    """The parts of the C text that a target decides.

    index: the C type of loop variables and places in buffers, of `index_bits` bits; with 16 bits, of loop variables only. alignment: of every
    buffer, in bytes. pool: whether entry points take a thread pool; otherwise they take only arguments and workspace, and nothing runs in parallel.
    by_element: whether instructions can multiply a vector by one element of another. hosted: whether there is an operating system, with a math library.
    apart: whether loop nests may be compiled alone, each as a function that is never inlined; only without a pool.
    """

    index: str = "long"
    index_bits: int = 64
    alignment: int = ALIGNMENT
    pool: bool = True
    by_element: bool = False
    hosted: bool = True
    apart: bool = False

    @property
    def prelude(self) -> str:
        """The beginning of every translation unit."""
        return (MATHEMATICS if self.hosted else BUILT_IN) + INCLUDES + (POOL if self.pool else "") + (APART if self.apart else "")


def literal(value: float | int | bool, dtype: str) -> str:
    """A constant of `dtype`."""
    if dtype == "bool":
        return "1" if value else "0"
    if dtype == BFLOAT16:
        return str(bits_of(value))
    if not dtype.startswith("float"):
        return _integer(int(value), dtype)
    with np.errstate(over="ignore"):
        rounded = np.dtype(dtype).type(value)  # first: a number beyond float32 is infinite there
        plain = 1e-5 <= abs(rounded) < 1e16 or rounded == 0
    if np.isnan(rounded):
        return _half("NAN", dtype)
    if np.isinf(rounded):
        return _half("INFINITY" if rounded > 0 else "(-INFINITY)", dtype)
    text = np.format_float_positional(rounded, trim="0") if plain else np.format_float_scientific(rounded, trim="0")
    text += "f" if dtype in ("float16", "float32") else ""
    return _half(f"({text})" if text.startswith("-") else text, dtype)


def _half(text: str, dtype: str) -> str:
    """A float as C text; C has no portable float16 literals."""
    return f"(({C_TYPES[dtype]}){text})" if dtype == "float16" else text


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
    """The typedefs, macros (mostly for instructions) and small functions of a translation unit, collected while its body is written."""

    types: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    instructions: dict[str, str] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=Ranges)
    index: str = "long"
    index_bits: int = 64
    hosted: bool = True
    apart: bool = False

    def vector(self, dtype: str, lanes: int) -> str:
        """The name of a vector type; loads and stores through it need only element alignment."""
        name = vector_type(dtype, lanes)
        size = BYTES[dtype] * lanes
        self.types.setdefault(name, f"typedef {C_TYPES[dtype]} {name} __attribute__((vector_size({size}), aligned({BYTES[dtype]}), may_alias));")
        return name

    def word(self) -> str:
        """The name of a type for four bytes at any address."""
        self.types.setdefault("i8x4_word", "typedef int i8x4_word __attribute__((aligned(1), may_alias));")
        return "i8x4_word"

    def wrapping(self, op: str, dtype: str, lanes: int, a: str, b: str) -> str:
        """C text of `a op b` for two vectors of integers, which wrap."""
        unsigned = self.vector(UNSIGNED[dtype], lanes)
        return f"({self.vector(dtype, lanes)})(({unsigned}){a} {op} ({unsigned}){b})"

    def unsigned(self, form: str, dtype: str, *operands: str) -> str:
        """C text of `form` for scalars converted to unsigned, where C leaves signed ones undefined; at least as wide as an int."""
        kind = C_TYPES[UNSIGNED[dtype]] if BYTES[dtype] >= 4 else "unsigned int"
        return f"({C_TYPES[dtype]}){form.format(*(f'({kind}){operand}' for operand in operands))}"

    def shift(self, op: str, dtype: str) -> str:
        """The name of a shift by any number of bits: beyond the width, or by a negative number, only copies of the sign remain."""
        name, kind, bits = f"{op}_{SHORT[dtype]}", C_TYPES[dtype], 8 * BYTES[dtype]
        inside = self.unsigned("({} << b)", dtype, "a") if op == "shl" else f"({kind})(a >> b)"
        beyond = "0" if op == "shl" else "-(a < 0)"
        self.functions.setdefault(name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return b >= 0 && b < {bits} ? {inside} : ({kind}){beyond}; }}")
        return name

    def extreme(self, op: str, dtype: str, lanes: int) -> str:
        """The name of min or max for scalars (lanes 1) or vectors. A NaN in either operand is kept, as in NumPy and PyTorch."""
        plain = "a < b" if op == "max" else "b < a"
        compare = f"(({plain}) | (b != b))" if dtype.startswith("float") else plain
        if lanes == 1:
            name = f"{op}_{SHORT[dtype]}"
            kind = C_TYPES[dtype]
            self.functions.setdefault(name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return {compare} ? b : a; }}")
            return name
        kind = self.vector(dtype, lanes)
        name = f"{op}_{kind}"
        select = self.select(dtype, lanes)
        value = f"{select}({plain}, b, a)"
        if dtype.startswith("float"):
            value = f"{select}(b != b, b, {value})"  # the inner choice is one instruction on many processors
        self.functions.setdefault(name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return {value}; }}")
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
        """The C name of a mathematical function: one of `vector_math`, else the C library's, lane by lane."""
        if dtype == "float32" and name in vector_math.FUNCTIONS:
            return self._own_function(name, lanes)
        if dtype == "float16":
            return self._half_function(name, lanes)
        suffix = "f" if dtype == "float32" else ""
        scalar = self._library(FUNCTIONS.get(name, name), suffix)
        if name in INLINE_FUNCTIONS:
            scalar = f"{name}_{SHORT[dtype]}"
            body, kind = INLINE_FUNCTIONS[name].format(f=suffix), C_TYPES[dtype]
            if name == "exp10":
                body = body.replace(f"pow{suffix}", self._library("pow", suffix))
            self.functions.setdefault(scalar, f"static inline {kind} {scalar}({kind} x) {{ return {body}; }}")
        if lanes == 1:
            return scalar
        return self._lanewise(scalar, self.vector(dtype, lanes), lanes, 2 if name in PAIRS else 1)

    def small_power(self, exponent: int, dtype: str, lanes: int) -> str:
        """The name of the power 2, 3 or 4, by products."""
        kind, name = (self.vector(dtype, lanes), vector_type(dtype, lanes)) if lanes > 1 else (C_TYPES[dtype], SHORT[dtype])
        value = {2: "y", 3: "y * x", 4: "y * y"}[exponent]
        full = f"power{exponent}_{name}"
        self.functions.setdefault(full, f"static inline {kind} {full}({kind} x) {{ const {kind} y = x * x; return {value}; }}")
        return full

    def _library(self, name: str, suffix: str) -> str:
        """The C name of a library function; our own if there is no library and compilers do not provide it."""
        if self.hosted:
            return name + suffix
        full = name + suffix
        for full, text in small_math.definitions(name, bool(suffix)):
            self.functions.setdefault(full, text.replace("static inline", "static ANSOR_APART") if self.apart else text)
        return full

    def _half_function(self, name: str, lanes: int) -> str:
        """A float16 function: that of float32, rounded once. Only nextafter differs."""
        kind = self.vector("float16", lanes) if lanes > 1 else C_TYPES["float16"]
        if name == "nextafter":
            self.functions.setdefault("nextafter_f16", NEXT_HALF)
            return "nextafter_f16" if lanes == 1 else self._lanewise("nextafter_f16", kind, lanes, 2)
        full, inner = f"{name}_{vector_type('float16', lanes) if lanes > 1 else SHORT['float16']}", self.call(name, "float32", lanes)
        names = "xy" if name in PAIRS else "x"
        wide = self.vector("float32", lanes) if lanes > 1 else C_TYPES["float32"]
        form = "__builtin_convertvector({}, {})" if lanes > 1 else "({1}){0}"
        value = form.format(f"{inner}({', '.join(form.format(one, wide) for one in names)})", kind)
        parameters = ", ".join(f"{kind} {one}" for one in names)
        self.functions.setdefault(full, f"static inline {kind} {full}({parameters}) {{ return {value}; }}")
        return full

    def widened(self, lanes: int) -> str:
        """The name of the conversion of bfloat16 to float32, which is exact."""
        if lanes == 1:
            text = "static inline float widened_bf16(unsigned short x) { union { unsigned int k; float x; } both = {(unsigned int)x << 16}; return both.x; }"
            self.functions.setdefault("widened_bf16", text)
            return "widened_bf16"
        narrow, wide, bits = (self.vector(dtype, lanes) for dtype in (BFLOAT16, "float32", "uint32"))
        return self._helper("widened", wide, f"{narrow} x", f"({wide})(__builtin_convertvector(x, {bits}) << 16)")

    def rounded(self, lanes: int) -> str:
        """The name of the conversion of float32 to bfloat16: the nearest one, halves to even. A NaN keeps its upper bits, and becomes quiet."""
        up, nan = "k + 0x7fffu + ((k >> 16) & 1u)", "k | 0x400000u"
        if lanes == 1:
            text = (f"static inline unsigned short rounded_bf16(float x) {{ union {{ float x; unsigned int k; }} both = {{x}}; const unsigned int k = both.k; "
                    f"return (unsigned short)((x != x ? {nan} : {up}) >> 16); }}")  # fmt: skip
            self.functions.setdefault("rounded_bf16", text)
            return "rounded_bf16"
        narrow, wide, bits = (self.vector(dtype, lanes) for dtype in (BFLOAT16, "float32", "uint32"))
        name = f"rounded_{wide}"
        self.functions.setdefault(name, (
            f"static inline {narrow} {name}({wide} x) {{ const {bits} k = ({bits})x, nan = ({bits})(x != x); "
            f"return __builtin_convertvector(((({up}) & ~nan) | (({nan}) & nan)) >> 16, {narrow}); }}"
        ))
        return name

    def every_lane(self, dtype: str, lanes: int) -> str:
        """The name of a broadcast of one scalar: for float16, which gcc promotes to float beside a vector."""
        kind = self.vector(dtype, lanes)
        value = f"({kind}){{{', '.join(['x'] * lanes)}}}"
        self.functions.setdefault(f"every_{kind}", f"static inline {kind} every_{kind}({C_TYPES[dtype]} x) {{ return {value}; }}")
        return f"every_{kind}"

    def _own_function(self, name: str, lanes: int) -> str:
        kind = self.vector("float32", lanes) if lanes > 1 else C_TYPES["float32"]
        ours = vector_math.FUNCTIONS[name]
        words = self._vector_words(ours.body, kind, lanes) if lanes > 1 else self._scalar_words()
        suffix = vector_type("float32", lanes) if lanes > 1 else SHORT["float32"]
        body = re.sub(r"\b[A-Z]+\b", lambda word: words.get(word[0], word[0]), ours.body.replace("\n", " "))
        inner = f"{name}_near_{suffix}" if ours.library else f"{name}_{suffix}"
        self.functions.setdefault(inner, f"static inline {kind} {inner}({kind} x) {{ {body} }}")
        if not ours.library:
            return inner
        outer = f"{name}_{suffix}"
        near = f"(x <= {vector_math.HUGE_ANGLE}f) & (x >= -{vector_math.HUGE_ANGLE}f)"
        text = f"return ({near}) ? {inner}(x) : {ours.library}(x);"
        if lanes > 1:
            mask = self.vector("int32", lanes)
            text = (f"{kind} y = {inner}(x); const {mask} near = {near}; int all = -1; for (int l = 0; l < {lanes}; ++l) all &= near[l]; "
                    f"if (!all) for (int l = 0; l < {lanes}; ++l) if (!near[l]) y[l] = {ours.library}(x[l]); return y;")  # fmt: skip
        self.functions.setdefault(outer, f"static inline {kind} {outer}({kind} x) {{ {text} }}")
        return outer

    def _vector_words(self, body: str, kind: str, lanes: int) -> dict[str, str]:
        """The meaning of the words in a body of `vector_math` for vectors."""
        unsigned, signed = self.vector("uint32", lanes), self.vector("int32", lanes)
        words = {"F": kind, "U": unsigned, "BITS": f"({unsigned})", "VALUE": f"({kind})"}
        if "ALL" in body:
            words["ALL"] = self._helper("all", kind, f"{C_TYPES['float32']} c", f"c - ({kind}){{}}")
        if "SELECT" in body:
            words["SELECT"] = self.select("float32", lanes)
        if "INTEGER" in body:
            words["INTEGER"] = self._helper("integer", kind, f"{unsigned} k", f"__builtin_convertvector(({signed})k, {kind})")
        if "WIDE" in body:
            wide = self.vector("float64", lanes)
            words["WIDE"] = self._helper("wide", wide, f"{kind} x", f"__builtin_convertvector(x, {wide})")
            words["NARROW"] = self._helper("narrow", kind, f"{wide} x", f"__builtin_convertvector(x, {kind})")
        return words

    def _scalar_words(self) -> dict[str, str]:
        """Their meaning for one element."""
        words = {"F": "float", "U": "unsigned int", "ALL": "", "INTEGER": "(float)(int)", "WIDE": "(double)", "NARROW": "(float)"}
        for word, name, kind, argument in (("BITS", "bits_u32", "unsigned int", "float x"), ("VALUE", "value_f32", "float", "unsigned int x")):
            words[word] = name
            union = "union { float x; unsigned int k; } both"
            start, end = (".x", "k") if word == "BITS" else (".k", "x")
            self.functions.setdefault(name, f"static inline {kind} {name}({argument}) {{ {union} = {{{start} = x}}; return both.{end}; }}")
        words["SELECT"] = "select_f32"
        self.functions.setdefault("select_f32", "static inline float select_f32(int mask, float a, float b) { return mask ? a : b; }")
        return words

    def _helper(self, name: str, kind: str, parameter: str, value: str) -> str:
        """A function that returns one value, named after its type."""
        full = f"{name}_{kind}"
        self.functions.setdefault(full, f"static inline {kind} {full}({parameter}) {{ return {value}; }}")
        return full

    def _lanewise(self, scalar: str, kind: str, lanes: int, arity: int) -> str:
        name = f"{scalar}_{kind}"
        parameters = ", ".join(f"{kind} {p}" for p in "xy"[:arity])
        arguments = ", ".join(f"{p}[l]" for p in "xy"[:arity])
        self.functions.setdefault(
            name, f"static inline {kind} {name}({parameters}) {{ for (int l = 0; l < {lanes}; ++l) x[l] = {scalar}({arguments}); return x; }}"
        )
        return name

    def shuffle(self, dtype: str, lanes: int, a: str, b: str, picked: Sequence[int]) -> str:
        """C text of the lanes `picked` from two vectors; those of the second are numbered from `lanes`."""
        self.instructions.setdefault("ANSOR_SHUFFLE", SHUFFLE)
        mask = self.vector(MASK[BYTES[dtype]], lanes)
        return f"ANSOR_SHUFFLE({mask}, {a}, {b}, {', '.join(map(str, picked))})"

    def every_second(self, dtype: str, lanes: int) -> str:
        """The name of a load of every second element from an address: two contiguous loads that end with the last element needed."""
        kind = self.vector(dtype, lanes)
        name = f"every_second_{kind}"
        picked = [*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)]
        value = self.shuffle(dtype, lanes, "a", "b", picked)
        load = f"const {kind} a = *(const {kind} *)p, b = *(const {kind} *)(p + {lanes - 1});"
        self.functions.setdefault(name, f"static inline {kind} {name}(const {C_TYPES[dtype]} *p) {{ {load} return {value}; }}")
        return name

    def transposition(self, dtype: str, lanes: int) -> str:
        """The name of transposing `lanes` vectors of as many lanes, in place: inside quads of lanes, then the quads themselves.

        Each round replaces pairs of vectors: in quads by their lanes interleaved, then by their even and their odd quads.
        """
        kind = self.vector(dtype, lanes)
        name = f"transpose_{kind}"
        quads = [range(first, first + QUAD) for first in range(0, lanes, QUAD)]
        low = [lane for quad in quads for k in quad[: QUAD // 2] for lane in (k, k + lanes)]
        high = [lane for quad in quads for k in quad[QUAD // 2 :] for lane in (k, k + lanes)]
        even = [lane for quad in quads[::2] for lane in quad]
        odd = [lane for quad in quads[1::2] for lane in quad]
        inside = [(first + k, first + k + step) for step, ks in ((2, (0, 1)), (1, (0, 2))) for first in range(0, lanes, QUAD) for k in ks]
        between = [(k, k + step) for step in (QUAD, 2 * QUAD) if step < lanes for k in range(lanes) if not k & step]
        self._pair(f"interleave_{kind}", dtype, lanes, low, high)
        if between:
            self._pair(f"part_{kind}", dtype, lanes, [*even, *(k + lanes for k in even)], [*odd, *(k + lanes for k in odd)])
        rounds = [*((f"interleave_{kind}", pair) for pair in inside), *((f"part_{kind}", pair) for pair in between)]
        body = " ".join(f"{function}(v + {a}, v + {b});" for function, (a, b) in rounds)
        self.functions.setdefault(name, f"static inline void {name}({kind} *v) {{ {body} }}")
        return name

    def _pair(self, name: str, dtype: str, lanes: int, first: Sequence[int], second: Sequence[int]) -> None:
        """A function that replaces two vectors by two choices of their lanes."""
        kind = self.vector(dtype, lanes)
        values = [self.shuffle(dtype, lanes, "x", "y", picked) for picked in (first, second)]
        self.functions.setdefault(
            name, f"static inline void {name}({kind} *a, {kind} *b) {{ const {kind} x = *a, y = *b; *a = {values[0]}; *b = {values[1]}; }}"
        )

    @property
    def _place(self) -> str:
        """The type of places in buffers: that of loop variables, or int if they are shorter, as C widens them."""
        return self.index if self.index_bits >= 32 else "int"

    def floor_division(self, op: str, dtype: str = "") -> str:
        """The name of floor division or modulo of possibly negative integers: indices, or values of `dtype`."""
        wide = dtype == "int64" and self.index_bits < 64
        name, kind = (f"ansor_{op}_i64", C_TYPES["int64"]) if wide else (f"ansor_{op}", self._place)
        body = "(a % b != 0 && (a < 0) != (b < 0)) ? a / b - 1 : a / b" if op == "floordiv" else "(a % b != 0 && (a < 0) != (b < 0)) ? a % b + b : a % b"
        self.functions.setdefault(name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return {body}; }}")
        return name

    def any_division(self, op: str, dtype: str) -> str:
        """The name of a total division: quotient and remainder by 0 are 0, and the least integer divided by -1 is itself."""
        name, kind = f"{op}_any_{SHORT[dtype]}", C_TYPES[dtype]
        floored = op in ("floordiv", "floormod")
        plain = f"({kind}){self.floor_division(op, dtype)}(a, b)" if floored else f"({kind})(a {'/' if op == 'truncdiv' else '%'} b)"
        negated = self.unsigned("(0 - {})", dtype, "a") if op in ("floordiv", "truncdiv") else "0"
        value = f"b == 0 ? 0 : b == -1 ? {negated} : {plain}" if dtype != "uint8" else f"b == 0 ? 0 : {plain}"
        self.functions.setdefault(name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return {value}; }}")
        return name

    def as_index(self, text: str, dtype: str) -> str:
        """C text of a value of `dtype` as an index, clipped to the range of indices."""
        bits = max(32, self.index_bits)
        if dtype != "int64" or bits >= 64:
            return f"({self._place}){text}"
        most = 2 ** (bits - 1) - 1
        body = f"x < -{most}LL ? -{most} : x > {most}LL ? {most} : ({self._place})x"
        self.functions.setdefault("ansor_index", f"static inline {self._place} ansor_index(long long x) {{ return {body}; }}")
        return f"ansor_index({text})"

    def inside(self) -> str:
        """The name of a function that clips a place to a buffer's length."""
        text = f"static inline {self._place} ansor_inside({self._place} i, {self._place} n) {{ return i < 0 ? 0 : i < n ? i : n - 1; }}"
        self.functions.setdefault("ansor_inside", text)
        return "ansor_inside"

    def text(self) -> str:
        """All definitions, types first."""
        passing = [PASSING] * bool(self.types and (self.functions or self.instructions))
        text = "\n".join([*self.types.values(), *passing, *self.instructions.values(), *self.functions.values()])
        return text.replace("static inline", "static inline ANSOR_INLINE") if self.apart else text


def definitions(helpers: Sequence[Helpers]) -> str:
    """The text of the helpers of several functions, each once."""
    found = Helpers(apart=any(one.apart for one in helpers))
    for one in helpers:
        for mine, others in ((found.types, one.types), (found.functions, one.functions), (found.instructions, one.instructions)):
            for name, text in others.items():
                mine.setdefault(name, text)
    return found.text()
