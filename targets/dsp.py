"""Instructions of Cortex-M processors with the DSP extension (M4, M7, M33, ...), by the names that compilers have for them: reading
arm_acle.h takes longer than most programs take to compile. They work on general registers, one sum at a time."""

from __future__ import annotations

from ansor.ir.intrinsics import CText, Intrinsic, inner_product

_EXTENDED = {"int8": "__builtin_arm_sxtb16", "uint8": "__builtin_arm_uxtb16"}  # bytes 0 and 2 of a word as two numbers of 16 bits
_TURNED = "(int)((unsigned)({0}) >> 8 | (unsigned)({0}) << 24)"  # bytes 1 and 3 in the places of 0 and 2
_SHORT = {"int8": "s8", "uint8": "u8"}


def _dot(a: str, b: str) -> Intrinsic:
    """Four products of bytes, as two of the dual multiply-accumulate; a compiler shares what is extended for several of them."""
    left, right = _EXTENDED[a], _EXTENDED[b]
    even = f"__builtin_arm_smlad({left}(a), {right}(b), acc)"
    text = f"__builtin_arm_smlad({left}({_TURNED.format('a')}), {right}({_TURNED.format('b')}), {even})"
    return Intrinsic(f"dsp_smlad_{_SHORT[a]}{_SHORT[b]}", inner_product(a, b, 1, 4), frozenset({"dsp"}), CText("", _MACRO, ((1, text),)))


_MACRO = "defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)"
PAIRS = Intrinsic("dsp_smlad_s16s16", inner_product("int16", "int16", 1, 2), frozenset({"dsp"}), CText("", _MACRO, ((1, "__builtin_arm_smlad(a, b, acc)"),)))
"""Two products of 16 bits."""

DOTS = tuple(_dot(a, b) for a, b in (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")))
"""In the order in which they are preferred."""
