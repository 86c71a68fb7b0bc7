"""Instructions of Cortex-M processors with the DSP extension (M4, M7, M33, ...), as arm_acle.h says them. They work on general registers, one sum at a time."""

from __future__ import annotations

from ansor.ir.intrinsics import CText, Intrinsic, inner_product

_EXTENDED = {"int8": "__sxtb16", "uint8": "__uxtb16"}  # bytes 0 and 2 of a word as two numbers of 16 bits
_SHORT = {"int8": "s8", "uint8": "u8"}


def _dot(a: str, b: str) -> Intrinsic:
    """Four products of bytes, as two of the dual multiply-accumulate; a compiler shares what is extended for several of them."""
    left, right = _EXTENDED[a], _EXTENDED[b]
    even = f"__smlad({left}(a), {right}(b), acc)"
    text = f"__smlad({left}(__ror(a, 8)), {right}(__ror(b, 8)), {even})"
    return Intrinsic(f"dsp_smlad_{_SHORT[a]}{_SHORT[b]}", inner_product(a, b, 1, 4), frozenset({"dsp"}), CText("arm_acle.h", _MACRO, ((1, text),)))


_MACRO = "defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)"
PAIRS = Intrinsic("dsp_smlad_s16s16", inner_product("int16", "int16", 1, 2), frozenset({"dsp"}), CText("arm_acle.h", _MACRO, ((1, "__smlad(a, b, acc)"),)))
"""Two products of 16 bits."""

DOTS = tuple(_dot(a, b) for a, b in (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")))
"""In the order in which they are preferred."""
