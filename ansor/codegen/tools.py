"""Calls a compiler and a linker: directly if known how, else through the compiler's driver."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ansor.codegen.compiler_commands import CompilerCommands, compiler_commands
from ansor.codegen.compiler_runtime import link_attempts, misses_symbols
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, Compiled, Compiler, call_tool, compile_files
from ansor.support import settings

LIBRARIES = ("-lm",)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of a tool's call: seconds, and an event that cancels it."""

    timeout: float
    cancelled: threading.Event | None = None


@dataclass(frozen=True)
class Tools:
    """A compiler and a linker. flags: of the compiler; link_flags: of its driver as a linker."""

    compiler: Compiler
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    limits: CallLimits

    @property
    def _commands(self) -> CompilerCommands | None:
        return self._commands_with(link_attempts(self.compiler.kind, self.link_flags)[0])

    def _commands_with(self, link_flags: tuple[str, ...]) -> CompilerCommands | None:
        return compiler_commands(self.compiler, self.flags, link_flags, LIBRARIES)

    def compiled(self, texts: Sequence[str], made: Sequence[Path]) -> Compiled:
        """Compile C texts, each into an object, in one call if possible. Failure is a value; then there are no objects."""
        commands = self._commands
        if commands is None:
            return self._one_by_one(texts, made)
        with tempfile.TemporaryDirectory(prefix="cc-", dir=made[0].parent) as scratch:
            files = [Path(scratch) / f"source{number}.c" for number in range(len(texts))]
            for file, text in zip(files, texts, strict=True):
                file.write_text(text)
            said = self._call(commands.compile_command(files))
            if said.ok:
                for file, path in zip(files, made, strict=True):
                    file.with_suffix(".o").replace(path)
        return said

    def _one_by_one(self, texts: Sequence[str], made: Sequence[Path]) -> Compiled:
        seconds = 0.0
        for text, path in zip(texts, made, strict=True):
            said = compile_files(self.compiler, [text], path, self.flags, timeout=self.limits.timeout, cancelled=self.limits.cancelled)
            seconds += said.seconds
            if not said.ok:
                break
        return replace(said, seconds=seconds)

    def linked(self, objects: Sequence[Path], made: Path) -> Compiled:
        """Link objects into one file. If calling the linker directly fails, the driver is used, which rebuilds libraries removed from its cache:
        that takes as long as a first call."""
        timeout = self.limits.timeout
        for flags in link_attempts(self.compiler.kind, self.link_flags):
            commands = self._commands_with(flags)
            if commands is None:
                break
            timeout = max(timeout, FIRST_CALL_SECONDS)
            said = self._call(commands.link_command(objects, made))
            if said.ok or said.kind == "compile_timeout":
                return said
            if not misses_symbols(said.text):
                break
        return compile_files(self.compiler, objects, made, self.link_flags, libraries=LIBRARIES, timeout=timeout, cancelled=self.limits.cancelled)

    def _call(self, command: tuple[str, ...]) -> Compiled:
        return call_tool(command, settings.environment_with({}), self.limits.timeout, self.limits.cancelled)
