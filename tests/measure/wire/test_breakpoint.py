"""An ebreak where memory keeps it, a hardware breakpoint elsewhere, and a sentence where neither is possible."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansor.measure.wire.breakpoint import EBREAK, clear_breakpoint, set_breakpoint
from ansor.measure.wire.debug_module import DebugModule
from ansor.measure.wire.program_buffer import Memory
from ansor.measure.wire.wire import WireError
from tests.measure.wire.fake_debug_module import BASE, FakeDebugModule

Connect = Callable[[FakeDebugModule], DebugModule]


def test_memory_gets_an_ebreak(connect: Connect) -> None:
    chip = FakeDebugModule()
    module = connect(chip)
    module.halt()
    assert not set_breakpoint(module, Memory(module), BASE + 6)
    assert chip.memory[6:10] == EBREAK and chip.csrs[0x7A2] == 0


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("address", [BASE + 8, 0x1000])
def test_other_places_get_a_hardware_breakpoint(connect: Connect, bits: int, address: int) -> None:
    chip = FakeDebugModule(bits=bits, fixed=(BASE, BASE + 64))
    module = connect(chip)
    module.halt()
    assert set_breakpoint(module, Memory(module), address)
    assert chip.csrs[0x7A2] == address and chip.csrs[0x7A1] >> (bits - 5) == 5 and chip.csrs[0x7A1] & 0xFFFF == 1 << 12 | 0b1011100
    clear_breakpoint(module)
    assert chip.csrs[0x7A1] == 0


def test_a_processor_without_them_says_so(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    chip = FakeDebugModule()
    module = connect(chip)
    module.halt()
    monkeypatch.setattr(module, "read_register", lambda register: 0)
    with pytest.raises(WireError, match="asked to run until 0x1000: .* no hardware breakpoint"):
        set_breakpoint(module, Memory(module), 0x1000)
