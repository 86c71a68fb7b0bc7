"""C text -> an image: one ELF file with the harness of a board and candidates, which a simulator starts and a wire loads."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ansor.codegen.artifact import Artifact
from ansor.codegen.building import Making
from ansor.codegen.c_toolchain import TOGETHER, apart
from ansor.codegen.identity import code_digests
from ansor.codegen.image import harness
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Image, read_image, write_elf
from ansor.codegen.library_cache import kept_library
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, Compiled, Compiler, building, compile_files
from ansor.codegen.trial.manifest import MANIFEST, program_text
from ansor.errors import ToolchainError

IMAGE = "image"
"""The form of what it makes."""

NO_ROOM = "the code of the program does not fit"
LINK = ("-static", "-nostartfiles", "-Wl,--gc-sections")
SOURCE_ORDER = ("-mllvm", "-enable-misched=0")
"""Instructions in the order of the text, where nothing but their number counts: no result is waited for, and LLVM's scheduler needs more registers than
there are (RISC-V without vectors: nearly twice the instructions, all of them spills)."""

PLAIN = CSource("void plain(void *const *args, unsigned char *workspace) {}\n", "plain", ())


@dataclass(frozen=True)
class ImageToolchain:
    """A compiler, for one board."""

    compiler: Compiler
    board: Board

    @property
    def version(self) -> str:
        """What the compiler says it is."""
        return self.compiler.version

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of candidates."""
        core = self.board.core
        order = SOURCE_ORDER if self.board.counter.unit == "instructions" else ()
        return (*self.compiler.code_flags(core.mcpu), "-target", core.triple, *core.flags, *order, "-ffreestanding", "-DTRIAL_SMALL")

    def forms(self) -> tuple[str, ...]:
        """Images alone."""
        return (IMAGE,)

    def together(self, form: str) -> int:
        """Candidates in one image: several where it has to go to a flash memory."""
        del form
        return TOGETHER if self.board.code.flash else 1

    def prepare(self, form: str) -> None:
        """Build the harness, and what the compiler links with code for this core."""
        if form != IMAGE:
            raise ToolchainError(f"asked for the form {form!r}, but programs for {self.board.name} are images: choose another device")
        path = _harness_path(self.compiler, self.board)
        kept_library(f"ready-{Path(self.board.name).stem}-{path.stem[-16:]}", self._first, ".elf")

    def _first(self, place: Path) -> None:
        made = self.build([PLAIN], IMAGE, place.with_suffix(""), timeout=FIRST_CALL_SECONDS)
        if not made.said.ok:
            raise ToolchainError(f"C compiler {self.compiler.version!r} cannot build programs for the board {self.board.name}: {made.said.text}")

    def harness(self) -> Image:
        """The part that all images of the board have in common. Raises ToolchainError when it does not build."""
        return _harness(self.compiler, self.board)

    def build(self, sources: Sequence[CSource], form: str, stem: Path, *, timeout: float, cancelled: threading.Event | None = None) -> Making:
        """See `Toolchain`. Equal machine code is told from the object, before it is linked."""
        symbols = [f"ansor_candidate_{number}" for number in range(len(sources))]
        text = "\n".join(apart(replace(one, text=program_text(one, small=True)), symbol, MANIFEST) for one, symbol in zip(sources, symbols, strict=True))
        made, linked_path, path, script = (stem.with_suffix(suffix) for suffix in (".o", ".linked", ".elf", ".ld"))
        objects = (*self.flags, "-c", "-g0", "-ffunction-sections", "-fdata-sections")
        compiled = compile_files(self.compiler, [text], made, objects, libraries=(), timeout=timeout, cancelled=cancelled)
        if not compiled.ok:
            return Making((), compiled)
        digests = code_digests(made, symbols)
        common = self.harness()
        script.write_text(_script(self.board, common, [f"{symbol}_{MANIFEST}" for symbol in symbols]))
        core = self.board.core
        linking = ("-target", core.triple, f"-mcpu={core.mcpu}", *LINK, f"-Wl,-T,{script}")
        linked = compile_files(self.compiler, [made], linked_path, linking, libraries=(), timeout=timeout, cancelled=cancelled)
        said = Compiled(linked.kind, linked.text, compiled.seconds + linked.seconds, linked.command)
        made.unlink()
        script.unlink()
        if not linked.ok:
            return Making((), replace(said, kind="does_not_fit") if NO_ROOM in said.text else said)
        write_elf(common.joined(read_image(linked_path)), path)
        linked_path.unlink()
        return Making(tuple(Artifact(one, path, symbol, form, digests.get(symbol, "")) for one, symbol in zip(sources, symbols, strict=True)), said)


def _harness_path(compiler: Compiler, board: Board) -> Path:
    core, files = board.core, harness.sources(board)
    flags = ("-target", core.triple, f"-mcpu={core.mcpu}", *core.flags, *harness.C_FLAGS, *harness.defines(board))
    texts = [path.read_text() for path in (*files, *(header for folder in harness.HEADERS for header in sorted(folder.glob("*.h"))))]
    words = (*texts, *flags, harness.script(board), compiler.version, *compiler.command)
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]

    def build(place: Path) -> None:
        script = place.with_suffix(".ld")
        script.write_text(harness.script(board))
        made = compile_files(compiler, files, place, (*flags, *LINK, f"-Wl,-T,{script}"), libraries=(), timeout=FIRST_CALL_SECONDS)
        script.unlink()
        if not made.ok:
            raise ToolchainError(f"C compiler {compiler.version!r} cannot build programs for the board {board.name}: {made.text}")

    with building.lock:
        return kept_library(f"harness-{Path(board.name).stem}-{key}", build, ".elf")


@lru_cache
def _harness(compiler: Compiler, board: Board) -> Image:
    """Read once: every image is joined with it. With the names that others ask for alone, as each costs time whenever an image is read."""
    image = read_image(_harness_path(compiler, board))
    names = {name: address for name, address in image.symbols.items() if name.startswith(("ansor_", "_start", "tohost", "fromhost"))}
    return replace(image, symbols=names)


def _script(board: Board, common: Image, kept: Sequence[str]) -> str:
    """Code behind that of the harness; data that would be written have no place. `kept`: symbols that others ask for."""
    free = f"{common.symbols['ansor_data_end']:#x}" if board.code_is_apart else "ansor_image_end"
    begin = common.symbols["ansor_code_end" if board.code_is_apart else "ansor_data_end"]
    return f"""EXTERN({" ".join(kept)})
SECTIONS {{
  . = {begin:#x};
  .text : {{ *(.text .text.*) *(.rodata .rodata.* .srodata .srodata.*) }}
  ansor_image_end = ALIGN(64);
  .data : {{ *(.data .data.* .sdata .sdata.* .bss .bss.* .sbss .sbss.* COMMON) }}
  ansor_free = {free};
  ASSERT(SIZEOF(.data) == 0, "the program has variables of its own: only constants have a place")
  ASSERT(ansor_image_end <= {board.code.end if board.code_is_apart else board.heap_end:#x}, "{NO_ROOM}: {board.code.name} of {board.name} \
has {board.code.end - begin:,} bytes for it")
  /DISCARD/ : {{ *(.ARM.exidx* .ARM.extab* .eh_frame* .comment .note*) }}
}}
"""
