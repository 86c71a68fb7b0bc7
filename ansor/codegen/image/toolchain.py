"""Builds images from C text: an ELF file with a board's harness and candidates, which a simulator starts and a wire loads."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ansor.codegen.artifact import Artifact
from ansor.codegen.building import BuildOutput
from ansor.codegen.c_toolchain import TOGETHER
from ansor.codegen.compiler_commands import CompilerCommands, compiler_commands
from ansor.codegen.compiler_runtime import NO_CHECKS
from ansor.codegen.image import frames, harness
from ansor.codegen.image.board import Board
from ansor.codegen.image.compilers import library_flags, zig_flags
from ansor.codegen.image.elf import Image, read_image, read_parts, write_elf
from ansor.codegen.image.objects import compiled_objects, units_of
from ansor.codegen.image.parts import NO_ROOM, part_name, parts_script
from ansor.codegen.library_cache import kept_library
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, Compiled, Compiler, building, call_tool, compile_files
from ansor.codegen.tools import CallLimits
from ansor.errors import ToolchainError
from ansor.support import settings
from ansor.support.text import clip

IMAGE = "image"
"""The form of its artifacts."""

LINK = ("-static", "-nostartfiles", "-Wl,--gc-sections")
SOURCE_ORDER = ("-mllvm", "-enable-misched=0", "-mllvm", "-enable-post-misched=0")
"""Keeps instructions in source order if only their number counts: there is no latency to hide, and LLVM's scheduler needs more registers than
there are (RISC-V without vectors: nearly twice the instructions, all of them spills)."""

AS_SUMMED = ("-mllvm", "-riscv-enable-machine-combiner=false")
"""For RISC-V, LLVM turns a + b + c into a + (b + c) to shorten dependency chains: in unrolled loops every product then needs a register
(16 sums of 4 steps: a sixth of the instructions)."""

PAIRED_LOADS = ("-mllvm", "-arm-prera-ldst-opt-reorder-limit=2")
"""How far LLVM moves loads to pair them, by default 8: further costs registers (dense layers with smlad: a tenth)."""

PLAIN_ADDRESSES = ("-mllvm", "-lsr-preferred-addressing-mode=none")
"""For Thumb code without vectors, LLVM looks for post-increment addressing. In unrolled loops that is a third of the compiler's
time, for no fewer instructions (48 dense programs without it: as many in the best ones, 0.5 % fewer on average)."""

SHORT_SCANS = ("-mllvm", "-memdep-block-scan-limit=3")
"""How many instructions LLVM looks back for an earlier load or store of the same place. The last such option counts: LLVM_FLAGS has 10. A twentieth of the
compiler's time, for the same instructions (four layers on three boards)."""

PLAIN = CSource("void plain(void *const *args, unsigned char *workspace) {}\n", "plain", ())


def counted_flags(architecture: str) -> tuple[str, ...]:
    """Flags of LLVM, for boards of an architecture where only the number of instructions counts."""
    return SOURCE_ORDER if architecture == "thumb" else (*SOURCE_ORDER, *AS_SUMMED)


@dataclass(frozen=True)
class ImageToolchain:
    """A compiler for one board."""

    compiler: Compiler
    board: Board

    @property
    def version(self) -> str:
        """The compiler's version."""
        return self.compiler.version

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of candidates."""
        return (*self.compiler.code_flags(self.board.core.mcpu), *self._core, "-ffreestanding", "-DTRIAL_SMALL")

    @property
    def machine(self) -> tuple[str, ...]:
        """The flags for the processor, for callers that rebuild candidates."""
        return (f"-mcpu={self.board.core.mcpu}", *self._core, *library_flags(self.board.core))

    @property
    def _core(self) -> tuple[str, ...]:
        core, counted = self.board.core, self.board.counter.unit == "instructions"
        addresses = (*PLAIN_ADDRESSES, *PAIRED_LOADS) if counted and core.architecture == "thumb" and core.vectors.bytes == 4 else ()
        return ("-target", core.triple, *core.options, "-fomit-frame-pointer", *SHORT_SCANS, *(counted_flags(core.architecture) if counted else ()), *addresses)

    def forms(self) -> tuple[str, ...]:
        """Only images."""
        return (IMAGE,)

    def together(self, form: str) -> int:
        """See `Toolchain`."""
        del form
        return TOGETHER

    def prepare(self, form: str) -> None:
        """Build the harness, and the compiler's library for this core."""
        if form != IMAGE:
            raise ToolchainError(f"asked for the form {form!r}, but programs for {self.board.name} are images: choose another device")
        path = _harness_path(self.compiler, self.board)
        self._commands()
        kept_library(f"ready-{Path(self.board.name).stem}-{path.stem[-16:]}", self._first, ".elf")

    def _first(self, place: Path) -> None:
        made = self.build([PLAIN], IMAGE, place.with_suffix(""), timeout=FIRST_CALL_SECONDS)
        if not made.said.ok:
            raise _refused(self.compiler, self.board, made.said)

    def harness(self) -> Image:
        """The part shared by all images of the board. Raises ToolchainError if it does not build."""
        return _harness(self.compiler, self.board)

    def build(self, sources: Sequence[CSource], form: str, stem: Path, *, timeout: float, cancelled: threading.Event | None = None) -> BuildOutput:
        """See `Toolchain`. By default, each candidate is its own image; digests are computed from the objects."""
        candidates = [units_of(source, f"ansor_candidate_{number}") for number, source in enumerate(sources)]
        symbols, limits = [one.symbol for one in candidates], CallLimits(timeout, cancelled)
        folder = stem.with_suffix(".parts")
        folder.mkdir()
        try:
            words = (self.version, *self.compiler.command, *self._object_flags)
            compiled, objects = compiled_objects(candidates, folder, words, lambda files: self._compiled(files, limits))
            if not compiled.ok:
                return BuildOutput((), compiled)
            if deep := frames.misfit(max((one.frame for one in objects), default=0), self.board.run.stack, self.board.name):
                return BuildOutput((), replace(compiled, kind="does_not_fit", text=deep))
            linked = self._linked(symbols, [*dict.fromkeys(path for one in objects for path in one.paths)], folder / "linked.elf", limits)
            said = replace(linked, seconds=compiled.seconds + linked.seconds)
            if not linked.ok:
                return BuildOutput((), replace(said, kind="does_not_fit") if NO_ROOM in said.text else said)
            paths = self._written(folder / "linked.elf", symbols, stem)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        rows = zip(sources, paths, symbols, objects, strict=True)
        return BuildOutput(tuple(Artifact(source, path, symbol, form, one.digest) for source, path, symbol, one in rows), said)

    @property
    def _object_flags(self) -> tuple[str, ...]:
        return (*self.flags, "-g0", "-ffunction-sections", "-fdata-sections", frames.FLAG)

    @property
    def _link_flags(self) -> tuple[str, ...]:
        return (*zig_flags(self.board.core), NO_CHECKS, *LINK)

    def _commands(self) -> CompilerCommands | None:
        return compiler_commands(self.compiler, self._object_flags, self._link_flags)

    def _compiled(self, files: Sequence[Path], limits: CallLimits) -> Compiled:
        """Make an object beside each file; returns the tools' output."""
        commands = self._commands()
        if commands is not None:
            return call_tool(commands.compile_command(files), settings.environment_with({}), limits.timeout, limits.cancelled)
        flags, seconds = (*self._object_flags, "-c"), 0.0
        for file in files:
            said = compile_files(self.compiler, [file], file.with_suffix(".o"), flags, libraries=(), timeout=limits.timeout, cancelled=limits.cancelled)
            seconds += said.seconds
            if not said.ok:
                break
        return replace(said, seconds=seconds)

    def _linked(self, symbols: Sequence[str], objects: Sequence[Path], path: Path, limits: CallLimits) -> Compiled:
        """Link all objects into one file. If calling the linker directly fails, the driver is used, whose errors count."""
        script = path.with_suffix(".ld")
        script.write_text(parts_script(self.board, self.harness(), symbols, over=not self._shares))
        commands = self._commands()
        if commands is not None:
            said = call_tool(commands.link_command(objects, path, "-T", str(script)), settings.environment_with({}), limits.timeout, limits.cancelled)
            if said.ok or said.kind == "compile_timeout":
                return said
        flags = (*self._link_flags, f"-Wl,-T,{script}")
        return compile_files(self.compiler, objects, path, flags, libraries=(), timeout=limits.timeout, cancelled=limits.cancelled)

    @property
    def _shares(self) -> bool:
        """Whether candidates of one call share an image: flash is expensive to write."""
        return self.board.code.flash

    def _written(self, linked: Path, symbols: Sequence[str], stem: Path) -> list[Path]:
        """Write images with the harness, one for all candidates or one each; returns their paths, by candidate."""
        common, names = self.harness(), [part_name(symbol) for symbol in symbols]
        if self._shares or len(symbols) == 1:
            paths, images = [stem.with_suffix(".elf")], [read_image(linked)]
        else:
            paths, images = [stem.with_suffix(f".{number}.elf") for number in range(len(symbols))], list(read_parts(linked, names))
        for path, image in zip(paths, images, strict=True):
            symbols_of_it = {**image.symbols, "ansor_free": next(at for name, at in image.symbols.items() if name.startswith("ansor_free"))}
            write_elf(common.joined(replace(image, symbols=symbols_of_it)), path)
        return paths if len(paths) == len(symbols) else paths * len(symbols)


def _refused(compiler: Compiler, board: Board, said: Compiled) -> ToolchainError:
    """The error of a board that nothing builds for: with the tools' first error, as the linker repeats itself for every address."""
    lines = said.text.splitlines() or [""]
    first = clip(next((line for line in lines if "error:" in line), lines[0]), 400)
    fields = "core.architecture, core.mcpu, core.flags, core.floats and memories"
    return ToolchainError(f"C compiler {compiler.version!r} cannot build programs for the board {board.name}: {first}; check {fields} (docs/boards.md)")


def _harness_path(compiler: Compiler, board: Board) -> Path:
    files = harness.sources(board)
    flags = (*zig_flags(board.core), *harness.C_FLAGS, *harness.defines(board))
    texts = [path.read_text() for path in (*files, *(header for folder in harness.HEADERS for header in sorted(folder.glob("*.h"))))]
    words = (*texts, *flags, harness.script(board), compiler.version, *compiler.command)
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]

    def build(place: Path) -> None:
        script = place.with_suffix(".ld")
        script.write_text(harness.script(board))
        made = compile_files(compiler, files, place, (*flags, *LINK, f"-Wl,-T,{script}"), libraries=(), timeout=FIRST_CALL_SECONDS)
        script.unlink()
        if not made.ok:
            raise _refused(compiler, board, made)

    with building.lock:
        return kept_library(f"harness-{Path(board.name).stem}-{key}", build, ".elf")


@lru_cache
def _harness(compiler: Compiler, board: Board) -> Image:
    """The harness, which every image is joined with. Only the symbols that others use are kept: each one slows down the reading of every image."""
    image = read_image(_harness_path(compiler, board))
    names = {name: address for name, address in image.symbols.items() if name.startswith(("ansor_", "_start", "tohost", "fromhost"))}
    return replace(image, symbols=names)
