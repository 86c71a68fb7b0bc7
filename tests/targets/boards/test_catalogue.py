"""Boards as data: what is shipped, what is refused, and one's own."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ansor.errors import TargetError
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import FOLDER, board_names, find_board

DOC = Path(__file__).resolve().parents[3] / "docs" / "boards.md"
PLAIN = (FOLDER / "qemu-riscv32.toml").read_text()


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", board_names())
def test_numbers_of_a_board_make_sense(name: str) -> None:
    board = find_board(name)
    assert board.name == name and board.about and board.code in board.memories and not board.data.flash
    assert board.run.stack < board.data.size and board.heap_end > board.data.start
    for one, other in ((one, other) for one in board.memories for other in board.memories if one is not other):
        assert one.end <= other.start or other.end <= one.start, f"{one.name} and {other.name} overlap"
    assert not board.run.command or board.run.step, "a simulator has a clock of its own"
    assert all("/" not in word or Path(word).is_file() for word in board.run.command if word.startswith("/"))
    assert parse_target(f"micro -board={name}").unit.name == board.counter.unit.partition(":")[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[core]", "colour = 1\n[core]"), r"has 'colour'; it may have name, about, core"),
        (("guard = 4096", "guard = '4096'"), r"core, guard: '4096' is not a whole number"),
        (("guard = 4096", "guard = true"), r"core, guard: True is not a whole number"),
        (("guard = 4096", "guard = 100"), r"the guard of 100 bytes has to be a power of two"),
        (('unit = "instructions"', 'unit = "apples"'), r"the counter's unit 'apples' is unknown; units are seconds"),
        (("start = 0x8000_0000\n", ""), r"memories lacks 'start'"),
        (("size = 0x0400_0000", "size = 0x0400_0000\nflash = true"), r"no memory is writable"),
        (("generic_rv32+m", "generic-rv32+m"), r"core.mcpu is 'generic-rv32.m.a.c'; .*did you mean 'generic_rv32.m.a.c'"),
        (("width = 8", "width = 7"), r"console.width is 7; registers have 8, 16, 32 bits"),
        (("rate = 2e8", "rate = 0"), r"run.rate is 0; give a number above 0"),
        (('kind = "clint"', 'kind = "clnt"'), r"watchdog.kind is 'clnt'; those of riscv32 are clint"),
        (("registers = [0x0200_bff8, 0x0200_4000]", "registers = [0x0200_bff8]"), r"watchdog.registers has 1 numbers; clint takes two"),
        (("[counter]", "[counter"), r"which cannot be read"),
        (('architecture = "riscv32"', 'architecture = "arm"'), r"the architecture 'arm' is unknown; choose one of .*riscv32.*thumb"),
        (('device = "qemu-system"', 'device = "qemu-system"\ncode = "rom"'), r"run.code is 'rom', which is not a memory; the memories are ram"),
        (("[counter]", '[[memories]]\nname = "ram"\nstart = 0\nsize = 16\n[counter]'), r"two memories are called 'ram'"),
        (("[counter]", '[[memories]]\nname = "more"\nstart = 0x8000_0000\nsize = 16\n[counter]'), r"'ram' and 'more' overlap"),
        (("IMAGE", "image"), r"run.command has no IMAGE"),
        (('csr = "minstret"', 'csr = "minstrt"'), r"is 'minstrt', which is not a register that counts: did you mean 'minstret'\? those by name are minstret"),
        (('csr = "minstret"', 'csr = "MCYCLE"'), r"did you mean 'mcycle'"),
        (('csr = "minstret"', 'csr = "mpccr"'), r"'mpccr', which is not a register that counts: .*write others by number, such as '0x7e2'"),
        (('csr = "minstret"', 'csr = "0x1000"'), r"counter.csr is '0x1000'"),
        (('csr = "minstret"', "register = 0x0200_bff8"), r"counter.register is 0x200bff8, but RISC-V cores count .*give counter.csr: those by name"),
        (('csr = "minstret"', ""), r"nothing counts: RISC-V cores do so in a control and status register here; give counter.csr"),
        (("end = [0x0010_0000, 0x5555]", "end = [0x8000_0000, 0x5555]"), r"console.end is 0x80000000, which is in the memory 'ram'"),
        (("[0x0200_bff8, 0x0200_4000]", "[0x0200_bff8, 0x8000_0010]"), r"watchdog.registers is 0x80000010, which is in the memory 'ram'"),
        (("width = 8", "htif = true"), r"console.htif is true, which prints and ends by itself"),
        (("width = 8", "setup = [0x1000_0000, 1]"), r"console, setup: 268435456 is not a list of 2 values"),
        (("end = [0x0010_0000, 0x5555]", ""), r"nothing ends it; give console.end"),
        (("end = [0x0010_0000, 0x5555]", 'end = "semihost"'), r"console.end is 'semihost'; give 'semihosting'"),
        (("end = [0x0010_0000, 0x5555]", 'end = "semihosting"'), r"which only Arm cores have here"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    assert change[0] in PLAIN
    path = written(tmp_path, PLAIN.replace(*change, 1))
    with pytest.raises(TargetError, match=said) as error:
        find_board(path)
    assert path in str(error.value)


def test_a_simulator_has_to_allow_semihosting(tmp_path: Path) -> None:
    text = (FOLDER / "mps2-an386.toml").read_text().replace('"-semihosting-config", "enable=on,target=native", ', "")
    with pytest.raises(TargetError, match="run.command does not allow it"):
        find_board(written(tmp_path, text))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("register = 0x4000_0004", 'csr = "minstret"'), "counter.csr is 'minstret', which only RISC-V cores have; give counter.register"),
        (("register = 0x4000_0004", "register = 0"), "nothing counts: counter.register is missing"),
        (("register = 0x4000_0004", "register = 0xe000_e018"), "that of SysTick, which has 24 bits and counts down; give counter.bits = 24"),
        (("register = 0x4000_0004", "register = 0x4000_0004\nbits = 16"), "counter.bits is 16: an overflow of such a counter would go unnoticed"),
    ],
)
def test_arm_cores_count_at_an_address(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    text = (FOLDER / "mps2-an386.toml").read_text()
    assert change[0] in text
    with pytest.raises(TargetError, match=said):
        find_board(written(tmp_path, text.replace(*change, 1)))


@given(some.dictionaries(some.sampled_from(["about", "core", "memories", "counter", "run", "console", "watchdog", "x"]),
                         some.sampled_from(["1", "'a'", "true", "[]", "{}", "[1, 2]", "[{}]", "1.5", "{ a = 1 }", "[[1, 2], [3]]"])))  # fmt: skip
@settings(max_examples=60)
def test_any_values_give_one_kind_of_error(tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]) -> None:
    path = written(tmp_path_factory.mktemp("board"), "".join(f"{name} = {value}\n" for name, value in values.items()))
    with pytest.raises(TargetError):
        find_board(path)


@given(some.integers(0, len(PLAIN) - 1), some.sampled_from(["", "\0", "[", "=", "9", '"', "-"]))
@settings(max_examples=60)
def test_a_damaged_file_gives_a_board_or_that_error(tmp_path_factory: pytest.TempPathFactory, at: int, put: str) -> None:
    path = written(tmp_path_factory.mktemp("board"), PLAIN[:at] + put + PLAIN[at + 1 :])
    with suppress(TargetError):
        find_board(path)


def test_the_board_of_the_page_is_small_and_a_board(tmp_path: Path) -> None:
    found = re.search(r"```toml\n(.*?)```", DOC.read_text(), re.DOTALL)
    assert found is not None and len(found[1].splitlines()) <= 40
    board = find_board(written(tmp_path, found[1]))
    assert board.core.mcpu == "cortex_m3" and str(parse_target(f"micro -board={board.name}")) == f"micro -board={board.name}"


def test_the_page_has_every_board_and_every_field() -> None:
    page = DOC.read_text()
    assert all(f"`{name}`" in page for name in board_names())
    tables = [(table, value) for path in FOLDER.glob("*.toml") for table, value in tomllib.loads(path.read_text()).items() if isinstance(value, dict)]
    fields = {(table, name) for table, value in tables for name in value}
    assert not [one for one in fields if ".".join(one) not in page and not re.search(rf"`{one[1]}\b", page)]
