"""Sizes of cores."""

from __future__ import annotations

import re

import pytest

from ansor.errors import TargetError
from ansor.vta.configuration import CORE_32, CORE_64, DEFAULT, Configuration, Memory


def test_the_default_core() -> None:
    assert [(DEFAULT.depth(one), DEFAULT.element_bytes(one)) for one in Memory] == [(8192, 4), (1024, 256), (2048, 16), (2048, 64), (2048, 16), (2048, 16)]
    assert str(DEFAULT) == "VTA 1x16x16: UOP 8192 x 4 B, WGT 1024 x 256 B, INP 2048 x 16 B, ACC 2048 x 64 B, OUT 2048 x 16 B"


def test_larger_cores() -> None:
    assert str(CORE_32) == "VTA 1x32x32: UOP 8192 x 4 B, WGT 256 x 1024 B, INP 1024 x 32 B, ACC 1024 x 128 B, OUT 1024 x 32 B"
    assert str(CORE_64) == "VTA 1x64x64: UOP 8192 x 4 B, WGT 64 x 4096 B, INP 512 x 64 B, ACC 512 x 256 B, OUT 512 x 64 B"


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"block": -1}, "block of a VTA core is -1; it is a logarithm to the base 2: pass a whole number from 0 to 30"),
        ({"weight_bytes": 19}, "a micro-op needs 33 bits in this VTA core, but has 32: make memories smaller, or the block larger"),
        ({"uop_bytes": 16}, "the first word of GEMM and ALU needs 65 bits in this VTA core, but has 64: make memories smaller, or the block larger"),
        ({"block": 9}, "WGT of this VTA core holds fewer than two elements of 262144 bytes: weight_bytes is 18, and has to be at least 19"),
    ],
)
def test_cores_that_cannot_be(sizes: dict[str, int], text: str) -> None:
    with pytest.raises(TargetError, match=f"^{re.escape(text)}$"):
        Configuration(**sizes)
