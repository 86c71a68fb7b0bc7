"""The part of images shared by all candidates of a board: the bare-metal trial program, linked once at fixed addresses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ansor.codegen.image.board import SYSTICK, Board, Writes
from ansor.codegen.trial.program import FOLDER as TRIAL

FOLDER = Path(__file__).parent
HEADERS = (FOLDER, TRIAL)
STARTS = {"riscv32": "riscv.c", "riscv64": "riscv.c", "thumb": "thumb.c"}
ASKED_BYTES = 3 << 10  # of bare.h
CODE_BYTES, DATA_BYTES = 38 << 10, 12 << 10
"""The harness's most bytes: of code and constants, and of variables besides the answer. Enforced by a test."""
BAND_BYTES = 2 * 64 + 64
"""Bytes around a buffer: its guard bands, and alignment."""
CSRS = 0x1000  # numbers of control and status registers are below
ALIGN = 512  # of a table of vectors
C_FLAGS = ("-Os", "-gdwarf", "-std=gnu99", "-ffreestanding", "-ffp-contract=off", "-fno-math-errno", "-fno-sanitize=all",
           "-ffunction-sections", "-fdata-sections", "-DTRIAL_SMALL", "-DTRIAL_SELECTED", f"-I{FOLDER}", f"-I{TRIAL}")  # fmt: skip


def sources(board: Board) -> tuple[Path, ...]:
    """The C files of a board's harness."""
    return (FOLDER / "bare.c", FOLDER / STARTS[board.core.architecture], TRIAL / "trial.c")


def defines(board: Board, *, apart: bool = True) -> tuple[str, ...]:
    """The board's macros for its C, as flags. apart: keep candidates from writing elsewhere, if the board can."""
    kept = _protection_macros(board) if apart and board.core.protects else ()
    return tuple(f"-D{name}={value}" for name, value in (*_macros(board), *kept))


def data_bytes(board: Board) -> int:
    """The most bytes of the harness in the data memory."""
    return board.answer_bytes + DATA_BYTES


def script(board: Board, *, told: bool = True) -> str:
    """The linker script of a program: constants go with the code, variables into the data memory. `ansor_code_end` and
    `ansor_data_end` mark free room. told: whether the request is written before the start, so that it must not be cleared.
    """
    shared = "  .shared (NOLOAD) : ALIGN(64) { KEEP(*(.shared)) }\n" if told else ""
    begin = f"  . = {board.data.start:#x};\n" if board.code_is_apart else ""
    boot = f"  .boot {board.boot.start:#x} : {{ LONG(ansor_stack_top) LONG(_start | 1) }} :boot\n" if board.boot else ""
    parts, code, data = ("PHDRS { code PT_LOAD; data PT_LOAD; boot PT_LOAD; }\n", " :code", " :data") if board.boot else ("", "", "")  # else linkers fill gaps
    fits = f'  ASSERT(ansor_code_end <= {board.code.end:#x}, "the program does not fit in the memory for code")\n' if board.code_is_apart else ""
    return f"""ENTRY(_start)
{parts}SECTIONS {{
  . = {board.code.start:#x};
  .vectors : {{ KEEP(*(.vectors)) }}{code}
  .text : {{ KEEP(*(.start)) *(.text .text.*) *(.rodata .rodata.* .srodata .srodata.* .got .data.rel.ro .data.rel.ro.*) }}
  .data : {{ *(.data .data.* .sdata .sdata.*) }}
  . = ALIGN({ALIGN});
  ansor_code_end = .;
{begin}  .tohost (NOLOAD) : ALIGN(64) {{ KEEP(*(.tohost)) }}{data}
{shared}  .bss (NOLOAD) : ALIGN(64) {{ ansor_bss_start = .; *(.shared) *(.bss .bss.* .sbss .sbss.* COMMON) . = ALIGN(8);
    ansor_still_end = .; *(.changing) . = ALIGN(8); ansor_bss_end = .; }}
  . = ALIGN({ALIGN});
  ansor_data_end = .;
  ansor_stack_low = {board.stack_low:#x};
  ansor_stack_top = {board.data.end:#x};
  ASSERT(SIZEOF(.data) == 0, "the program has initialised variables: only constants are supported")
  ASSERT(ansor_bss_end <= {board.heap_end:#x}, "the program's data do not fit in the memory for data")
{fits}{boot}  /DISCARD/ : {{ *(.ARM.exidx* .ARM.extab* .eh_frame* .comment .note*) }}
}}
"""


def _macros(board: Board) -> Iterator[tuple[str, str]]:
    counter, console, watchdog = board.counter, board.console, board.watchdog
    yield "BOARD_ANSWER_BYTES", str(board.answer_bytes)
    yield "BOARD_COUNTER_HERTZ", repr(counter.hertz)
    if counter.csr:
        yield "BOARD_COUNTER_CSR", f'"{counter.csr}"'
        if counter.csr.startswith("0x"):
            yield "BOARD_COUNTER_ALONE", "1"
    else:
        yield "BOARD_COUNTER_REGISTER", f"{counter.register:#x}u"
        yield "BOARD_COUNTER_BITS", str(counter.bits)
    if board.counts_systick:
        yield "BOARD_SYSTICK", f"{SYSTICK:#x}u"
    if counter.down:
        yield "BOARD_COUNTER_DOWN", "1"
    if setup := _setup((*console.setup, *counter.setup)):
        yield "BOARD_SETUP", setup
    yield from _console_macros(board)
    if watchdog.kind == "clint":
        yield "BOARD_MTIME", f"{watchdog.registers[0]:#x}ul"
        yield "BOARD_MTIMECMP", f"{watchdog.registers[1]:#x}ul"
    elif watchdog.kind:
        yield f"BOARD_WATCHDOG_{watchdog.kind.upper()}", f"{watchdog.registers[0]:#x}u"
        yield "BOARD_WATCHDOG_LINE", str(watchdog.registers[1])
    if board.core.architecture != "thumb":
        yield "BOARD_HART", str(board.run.hart)
    if board.core.guard:
        yield "BOARD_GUARD_BYTES", f"{board.core.guard}u"


def _protection_macros(board: Board) -> Iterator[tuple[str, str]]:
    yield "TRIAL_APART", "1"
    yield "BOARD_CODE_IS_APART", str(int(board.code_is_apart))
    for name, memory in (("DATA", board.data), ("CODE", board.code)):
        yield f"BOARD_{name}_START", f"{memory.start:#x}ul"
        yield f"BOARD_{name}_BYTES", f"{memory.size:#x}ul"


def _console_macros(board: Board) -> Iterator[tuple[str, str]]:
    console = board.console
    if console.htif:
        yield "BOARD_CONSOLE_HTIF", "1"
        if board.run.device == "spike" and board.core.architecture == "riscv32":
            yield "BOARD_CONSOLE_CALLS", "1"
    elif console.data:
        yield "BOARD_CONSOLE_DATA", f"{console.data:#x}ul"
        yield "BOARD_CONSOLE_STATUS", f"{console.status:#x}ul"
        yield "BOARD_CONSOLE_MASK", f"{console.mask:#x}u"
        yield "BOARD_CONSOLE_READY", f"{console.ready:#x}u"
        yield "BOARD_CONSOLE_WORD", {8: "uint8_t", 16: "uint16_t", 32: "uint32_t"}[console.width]
    if console.end == "semihosting":
        yield "BOARD_END_SEMIHOSTING", "1"
    elif isinstance(console.end, tuple):
        yield "BOARD_END_REGISTER", f"{console.end[0]:#x}ul"
        yield "BOARD_END_VALUE", f"{console.end[1]:#x}u"


def _setup(writes: Writes) -> str:
    return "".join(f'CSR_WRITE("{at:#x}",{value:#x}u);' if at < CSRS else f"set_register({at:#x}ul,{value:#x}u);" for at, value in writes)
