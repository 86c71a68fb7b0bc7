"""Instructions of ARM processors, from arm_neon.h."""

from __future__ import annotations

from ansor.ir.intrinsics import CText, Intrinsic, inner_product, matrix_product

VECTOR_BYTES = 16


def _dot(name: str, a: str, b: str, feature: str, text: str) -> Intrinsic:
    """Four groups of four bytes, each summed in a 32-bit lane."""
    macro = {"dotprod": "defined(__ARM_FEATURE_DOTPROD)", "i8mm": "defined(__ARM_FEATURE_MATMUL_INT8)"}[feature]
    return Intrinsic(name, inner_product(a, b, 4, 4), frozenset({feature}), CText("arm_neon.h", macro, ((4, text),)))


def _matrix(name: str, a: str, b: str, text: str) -> Intrinsic:
    """Two rows of eight bytes by two columns: four sums in a vector."""
    macro = "defined(__ARM_FEATURE_MATMUL_INT8)"
    return Intrinsic(name, matrix_product(a, b, 2, 2, 8), frozenset({"i8mm"}), CText("arm_neon.h", macro, ((4, text),)))


MATRICES = (
    _matrix("neon_smmla", "int8", "int8", "vmmlaq_s32((int32x4_t)acc, (int8x16_t)a, (int8x16_t)b)"),
    _matrix("neon_ummla", "uint8", "uint8", "vmmlaq_u32((uint32x4_t)acc, (uint8x16_t)a, (uint8x16_t)b)"),
    _matrix("neon_usmmla", "uint8", "int8", "vusmmlaq_s32((int32x4_t)acc, (uint8x16_t)a, (int8x16_t)b)"),
)
DOTS = (
    _dot("neon_sdot", "int8", "int8", "dotprod", "vdotq_s32((int32x4_t)acc, (int8x16_t)a, (int8x16_t)b)"),
    _dot("neon_udot", "uint8", "uint8", "dotprod", "vdotq_u32((uint32x4_t)acc, (uint8x16_t)a, (uint8x16_t)b)"),
    _dot("neon_usdot_u8s8", "uint8", "int8", "i8mm", "vusdotq_s32((int32x4_t)acc, (uint8x16_t)a, (int8x16_t)b)"),
    _dot("neon_usdot_s8u8", "int8", "uint8", "i8mm", "vusdotq_s32((int32x4_t)acc, (uint8x16_t)b, (int8x16_t)a)"),
)
"""In order of preference."""
