"""How programs of boards are compiled."""

from __future__ import annotations

import pytest

from ansor.targets.base import parse_target


@pytest.mark.compiler
@pytest.mark.parametrize(("board", "wanted"), [("mps2-an386", True), ("spike-rv32", True), ("rvsim-inorder", False), ("nrf52840dk", False)])
def test_instructions_stay_in_order_where_they_alone_are_counted(board: str, wanted: bool) -> None:
    flags = parse_target(f"micro -board={board}").toolchain().flags
    assert ("-enable-misched=0" in flags) is wanted


@pytest.mark.compiler
@pytest.mark.parametrize(("board", "wanted"), [("mps2-an386", True), ("mps3-an547", False), ("spike-rv32", False), ("nrf52840dk", False)])
def test_addresses_stay_plain_in_thumb_code_that_is_counted(board: str, wanted: bool) -> None:
    flags = parse_target(f"micro -board={board}").toolchain().flags
    assert ("-lsr-preferred-addressing-mode=none" in flags) is wanted
    assert ("-arm-prera-ldst-opt-reorder-limit=2" in flags) is wanted


@pytest.mark.compiler
@pytest.mark.parametrize(("board", "wanted"), [("mps2-an386", False), ("spike-rv32", True), ("rvsim-inorder", False)])
def test_sums_stay_in_order_in_risc_v_code_that_is_counted(board: str, wanted: bool) -> None:
    assert ("-riscv-enable-machine-combiner=false" in parse_target(f"micro -board={board}").toolchain().flags) is wanted
