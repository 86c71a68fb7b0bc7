"""Instructions of Cortex-M processors with the DSP extension (M4, M7, M33, ...), as compiler builtins: reading
arm_acle.h takes longer than compiling most programs. They use general registers, and compute one sum at a time."""

from __future__ import annotations

from ansor.ir.intrinsics import CText, Intrinsic, inner_product

_EXTENDED = {"int8": "__builtin_arm_sxtb16", "uint8": "__builtin_arm_uxtb16"}  # bytes 0 and 2 of a word as two 16-bit numbers
_TURNED = "(int)((unsigned)({0}) >> 8 | (unsigned)({0}) << 24)"  # bytes 1 and 3 moved to 0 and 2
_SHORT = {"int8": "s8", "uint8": "u8"}


def _dot(a: str, b: str) -> Intrinsic:
    """Four products of bytes, as two dual multiply-accumulates; compilers share the extended operands."""
    left, right = _EXTENDED[a], _EXTENDED[b]
    even = f"__builtin_arm_smlad({left}(a), {right}(b), acc)"
    text = f"__builtin_arm_smlad({left}({_TURNED.format('a')}), {right}({_TURNED.format('b')}), {even})"
    return Intrinsic(f"dsp_smlad_{_SHORT[a]}{_SHORT[b]}", inner_product(a, b, 1, 4), frozenset({"dsp"}), CText("", _MACRO, ((1, text),)))


_MACRO = "defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)"
PAIRS = Intrinsic("dsp_smlad_s16s16", inner_product("int16", "int16", 1, 2), frozenset({"dsp"}), CText("", _MACRO, ((1, "__builtin_arm_smlad(a, b, acc)"),)))
"""Two 16-bit products."""

DOTS = tuple(_dot(a, b) for a, b in (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")))
"""In order of preference."""
