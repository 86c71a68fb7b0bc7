"""Halting, resuming and registers; errors of commands are said in words and forgotten."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansor.measure.wire import debug_module
from ansor.measure.wire.debug_module import DPC, S0, S1, CommandError, DebugModule, ModuleParts
from ansor.measure.wire.wire import WireError
from tests.measure.wire.fake_debug_module import BASE, EBREAK, FakeDebugModule

Connect = Callable[[FakeDebugModule], DebugModule]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debug_module, "ANSWER_SECONDS", 0.1)


@pytest.mark.parametrize("bits", [32, 64])
def test_it_finds_what_the_module_has(connect: Connect, bits: int) -> None:
    module = connect(FakeDebugModule(bits=bits, data=4, program=6, ends_itself=False, automatic=False))
    module.halt()
    assert module.bits == bits and module.halted()
    assert module.parts == ModuleParts(4, 6, 0x380, automatic=False, ends_itself=False)


@pytest.mark.parametrize("csr_access", [True, False])
@pytest.mark.parametrize("bits", [32, 64])
def test_registers_are_read_and_written(connect: Connect, bits: int, csr_access: bool) -> None:
    chip = FakeDebugModule(bits=bits, csr_access=csr_access)
    module, value = connect(chip), 0xFEDCBA9876543210 & ((1 << bits) - 1)
    module.halt()
    module.write_register(DPC, value)
    module.write_register(0x100A, value - 1)
    assert (module.read_register(DPC), module.read_register(0x100A)) == (value, value - 1)
    assert (chip.csrs[DPC], chip.registers[10]) == (value, value - 1)


def test_what_was_borrowed_is_put_back_when_it_runs(connect: Connect) -> None:
    chip = FakeDebugModule()
    module = connect(chip)
    module.halt()
    module.borrow(S0, S1)
    chip.registers.update({8: 1, 9: 2})
    assert (module.read_register(S0), module.held(S0)) == (0x1234, 1)
    module.write_register(S1, 99)
    module.resume()
    assert (chip.registers[8], chip.registers[9], chip.halted) == (0x1234, 99, False)


def test_it_resumes_and_halts(connect: Connect) -> None:
    chip = FakeDebugModule()
    module = connect(chip)
    module.halt()
    module.resume()
    assert not module.halted()
    module.halt()
    assert module.halted()
    chip.memory[:4] = EBREAK.to_bytes(4, "little")
    module.write_register(DPC, BASE)
    module.resume()
    assert module.halted() and module.read_register(DPC) == BASE


def test_a_reset_halts(connect: Connect) -> None:
    chip = FakeDebugModule()
    module = connect(chip)
    module.halt()
    module.reset()
    assert chip.resets == 1 and module.halted() and module.read_register(DPC) == 0x1000


@pytest.mark.parametrize(("code", "words"), [(2, "does not support"), (3, "took an exception"), (4, "was not halted"), (5, "the bus"), (7, "unknown reason")])
def test_errors_of_commands_have_words_and_are_forgotten(connect: Connect, code: int, words: str) -> None:
    chip = FakeDebugModule()
    module = connect(chip)
    module.halt()
    chip.errors = [code]
    with pytest.raises(CommandError, match=rf"{words}.* .cmderr {code}") as caught:
        module.read_register(0x100A)
    assert caught.value.code == code and chip.code == 0
    module.write_register(0x100A, 5)
    assert module.read_register(0x100A) == 5


def test_a_processor_that_runs_has_no_registers_to_read(connect: Connect) -> None:
    module = connect(FakeDebugModule())
    module.halt()
    module.resume()
    with pytest.raises(CommandError, match="not halted"):
        module.read_register(0x100A)


@pytest.mark.parametrize("clocks", [2, 5, 40])
def test_commands_that_take_longer_are_waited_for(connect: Connect, clocks: int) -> None:
    module = connect(FakeDebugModule(command_clocks=clocks))
    module.halt()
    module.write_register(0x100A, 0x123456789A)
    assert module.read_register(0x100A) == 0x123456789A


def test_a_command_that_never_ends_is_an_error(connect: Connect) -> None:
    module = connect(FakeDebugModule(command_clocks=10**9))
    with pytest.raises(WireError, match="is not done after 0.1 seconds"):
        module.halt()


@pytest.mark.parametrize(("deaf", "what"), [("halt", "does not halt"), ("resume", "does not resume")])
def test_a_deaf_processor_is_an_error(connect: Connect, deaf: str, what: str) -> None:
    module = connect(FakeDebugModule(deaf=(deaf,)))
    with pytest.raises(WireError, match=what):
        module.halt()
        module.resume()


@pytest.mark.parametrize(("chip", "words"), [
    (FakeDebugModule(deaf=("activate",)), "does not become active"),
    (FakeDebugModule(status=1 | 1 << 7), "is of version 1"),
    (FakeDebugModule(status=2), "asks for authentication"),
    (FakeDebugModule(status=2 | 1 << 7 | 1 << 15), "no processor 0"),
])  # fmt: skip
def test_another_module_is_refused(connect: Connect, chip: FakeDebugModule, words: str) -> None:
    with pytest.raises(WireError, match=words):
        connect(chip)


def test_a_program_that_is_too_long_is_refused(connect: Connect) -> None:
    module = connect(FakeDebugModule(program=0))
    module.halt()
    with pytest.raises(WireError, match="a program buffer of 0 words and an ebreak; this wire needs 1"):
        module.fence()
