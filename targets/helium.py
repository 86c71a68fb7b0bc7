"""Instructions of Cortex-M processors with Helium (M55, M85), from arm_mve.h: sixteen products of bytes, or eight of 16 bits, added to one sum."""

from __future__ import annotations

from ansor.ir.intrinsics import CText, Intrinsic, inner_product

_SHORT = {"int8": "s8", "uint8": "u8", "int16": "s16"}
_MACRO = "defined(__ARM_FEATURE_MVE)"


def _dot(dtype: str, lanes: int) -> Intrinsic:
    short, kind = _SHORT[dtype], f"{dtype}x{lanes}_t"
    code = f"vmladavaq_{short}(acc, ({kind})a, ({kind})b)"
    return Intrinsic(f"mve_vmladava_{short}", inner_product(dtype, dtype, 1, lanes), frozenset({"mve"}), CText("arm_mve.h", _MACRO, ((1, code),)))


DOTS = tuple(_dot(dtype, lanes) for dtype, lanes in (("int8", 16), ("uint8", 16), ("int16", 8)))
