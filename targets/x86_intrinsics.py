"""Instructions of x86 processors, from immintrin.h. docs/int8.md and docs/bfloat16.md say when each gives correct results."""

from __future__ import annotations

from ansor.ir.intrinsics import Block, CText, Intrinsic, inner_product

_VNNI = ("avx512vnni avx512vl", "defined(__AVX512VNNI__) && defined(__AVX512VL__)", (16, 8, 4))
_AVX_VNNI = ("avxvnni", "defined(__AVXVNNI__)", (8, 4))
_PAIRS = (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8"))
_SHORT = {"int8": "s8", "uint8": "u8"}


def _code(form: str, lanes: tuple[int, ...]) -> tuple[tuple[int, str], ...]:
    """C text for each number of lanes: `form` with {mm} for the prefix of a function, and {m} for a cast to the vector's type."""
    bits = {16: "512", 8: "256", 4: ""}
    return tuple((n, form.format(mm=f"_mm{bits[n]}", m=f"(__m{bits[n] or '128'}i)")) for n in lanes)


def _dots(prefix: str, function: str, features: str, macro: str, lanes: tuple[int, ...]) -> tuple[Intrinsic, ...]:
    """The product of unsigned with signed bytes, in both orders; an offset makes signed ones unsigned."""
    straight, swapped = (f"{{mm}}_{function}({{m}}acc, {{m}}{one}, {{m}}{other})" for one, other in (("a", "b"), ("b", "a")))

    def one(a: str, b: str, form: str, offset: int = 0, plain: Intrinsic | None = None) -> Intrinsic:
        declaration = inner_product(a, b, lanes[0], 4)
        name = f"{prefix}_{_SHORT[a]}{_SHORT[b]}"
        return Intrinsic(name, declaration, frozenset(features.split()), CText("immintrin.h", macro, _code(form, lanes)), offset=offset, plain=plain)

    mixed = one("uint8", "int8", straight)
    return mixed, one("int8", "uint8", swapped), one("int8", "int8", straight, 128, mixed)


def _madds(prefix: str, feature: str, macro: str, lanes: tuple[int, ...]) -> tuple[Intrinsic, ...]:
    """Products of sixteen-bit numbers, summed in pairs: exact for 8-bit numbers of either sign on both sides."""
    code = CText("immintrin.h", macro, _code("{mm}_add_epi32({m}acc, {mm}_madd_epi16({m}a, {m}b))", lanes))
    return tuple(
        Intrinsic(f"{prefix}_{_SHORT[a]}{_SHORT[b]}", inner_product(a, b, lanes[0], 2), frozenset({feature}), code, widened=True)
        for a, b in _PAIRS
    )


_BF16 = Intrinsic(
    "avx512_dpbf16", inner_product("bfloat16", "bfloat16", 16, 2, "float32"), frozenset({"avx512bf16", "avx512vl"}),
    CText("immintrin.h", "defined(__AVX512BF16__) && defined(__AVX512VL__)", tuple(
        (lanes, f"_mm{bits}_dpbf16_ps((__m{bits or '128'})acc, (__m{bits or '128'}bh)a, (__m{bits or '128'}bh)b)")
        for lanes, bits in ((16, "512"), (8, "256"), (4, ""))
    )),
)  # fmt: skip
"""Two products of bfloat16, added to a float32."""

_TILES = Block(rows=16, groups=16, registers=8, least_rows=6, least_groups=4)
_AMX = "defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AMX_BF16__)"  # all processors with AMX have these; so one function may use several


def _amx(a: str, b: str, function: str) -> Intrinsic:
    """A product of blocks of bytes in AMX's registers: sixteen rows of 64 bytes each."""
    code = CText("immintrin.h", _AMX, ((16, function),))
    return Intrinsic(f"amx_{_SHORT[a]}{_SHORT[b]}", inner_product(a, b, 16, 4), frozenset({"amx-int8"}), code, block=_TILES)


_AMX_BF16 = Intrinsic(
    "amx_dpbf16", inner_product("bfloat16", "bfloat16", 16, 2, "float32"), frozenset({"amx-bf16"}),
    CText("immintrin.h", _AMX, ((16, "_tile_dpbf16ps"),)), block=_TILES,
)  # fmt: skip
_AMX_BYTES = {("uint8", "int8"): "_tile_dpbusd", ("int8", "uint8"): "_tile_dpbsud", ("int8", "int8"): "_tile_dpbssd", ("uint8", "uint8"): "_tile_dpbuud"}

INTRINSICS = (
    *(_amx(a, b, function) for (a, b), function in _AMX_BYTES.items()),
    _AMX_BF16,
    *_dots("avx512_dpbusd", "dpbusd_epi32", *_VNNI),
    *_dots("avx_dpbusd", "dpbusd_avx_epi32", *_AVX_VNNI),
    *_madds("avx512_pmaddwd", "avx512bw", "defined(__AVX512BW__)", (16, 8, 4)),
    *_madds("avx2_pmaddwd", "avx2", "defined(__AVX2__)", (8, 4)),
    *_madds("sse2_pmaddwd", "sse2", "defined(__SSE2__)", (4,)),
    _BF16,
)
"""In order of preference."""
