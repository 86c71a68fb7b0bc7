"""Linker scripts for candidates: after their board's harness, each in its own section."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Image
from ansor.codegen.image.objects import ENTRIES
from ansor.codegen.trial.manifest import MANIFEST

NO_ROOM = "the code of the program does not fit"
_CODE = ".text .text.* .rodata .rodata.* .srodata .srodata.* .got .data.rel.ro .data.rel.ro.*"
_NEXT = "\n    "
_STRINGS = f"*{ENTRIES}.o(.rodata.str*)"  # the compiler keeps equal strings of a file once, so they belong to no candidate
_VARIABLES = ".data .data.* .sdata .sdata.* .bss .bss.* .sbss .sbss.* COMMON"


def part_name(symbol: str) -> str:
    """The section of a candidate."""
    return f".{symbol}"


def parts_script(board: Board, common: Image, symbols: Sequence[str], *, over: bool) -> str:
    """A linker script for the objects `entries.o` or `SYMBOL.o`, and `SYMBOL_nest*.o`. First come the shared parts of the compiler's library, and the names of
    arguments. over: candidates overlap, as each gets its own image; else they are consecutive. `ansor_free_SYMBOL` is where buffers may begin.

    Writable data are not supported.
    """
    begin = common.symbols["ansor_code_end" if board.code_is_apart else "ansor_data_end"]
    parts = [f"{part_name(symbol)} {'' if over else 'ALIGN(64) : '}{{ {_sections(symbol)} }}" for symbol in symbols]
    placed = f"OVERLAY ansor_parts : {{\n    {_NEXT.join(parts)}\n  }}" if over else "\n  ".join(parts)
    return f"""EXTERN({" ".join(f"{symbol}_{MANIFEST}" for symbol in symbols)})
SECTIONS {{
  . = {begin:#x};
  .text : {{ *.a:*({_CODE}) {_STRINGS} }}
  ansor_parts = ALIGN(64);
  {placed}
{"".join(_ends(board, common, symbol) for symbol in symbols)}  .data : {{ *({_VARIABLES}) }}
  ASSERT(SIZEOF(.data) == 0, "the program has its own variables: only constants are supported")
  .unplaced : {{ *({_CODE}) }}
  ASSERT(SIZEOF(.unplaced) == 0, "the compiler made constants that belong to no candidate")
  /DISCARD/ : {{ *(.ARM.exidx* .ARM.extab* .eh_frame* .comment .note*) }}
}}
"""


def _sections(symbol: str) -> str:
    """The code and constants of a candidate."""
    own = f".text.{symbol} " + " ".join(f"{kind}.{symbol}_*" for kind in (".rodata", ".srodata", ".data.rel.ro"))
    return f"*{ENTRIES}.o({own}) *{symbol}.o({_CODE}) *{symbol}_nest*.o({_CODE})"


def _ends(board: Board, common: Image, symbol: str) -> str:
    name, end = part_name(symbol), f"ansor_end_{symbol}"
    begin = common.symbols["ansor_code_end" if board.code_is_apart else "ansor_data_end"]
    limit = board.code.end if board.code_is_apart else board.heap_end
    free = f"{common.symbols['ansor_data_end']:#x}" if board.code_is_apart else end
    return f"""  {end} = ALIGN(ADDR({name}) + SIZEOF({name}), 64);
  ansor_free_{symbol} = {free};
  ASSERT({end} <= {limit:#x}, "{NO_ROOM}: {board.code.name} of {board.name} has {board.code.end - begin:,} bytes for it")
"""
