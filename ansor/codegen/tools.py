"""A compiler and a linker for one text: called directly where that is known how, else by the compiler's driver."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ansor.codegen.direct import Direct, direct_calls
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, Compiled, Compiler, call_tool, compile_files
from ansor.support import settings

LIBRARIES = ("-lm",)


@dataclass(frozen=True)
class Tools:
    """Calls of them. flags: of the compiler; link_flags: of its driver as a linker; timeout: seconds of one call; cancelled: ends a call when set."""

    compiler: Compiler
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    timeout: float
    cancelled: threading.Event | None = None

    @property
    def _direct(self) -> Direct | None:
        return direct_calls(self.compiler, self.flags, self.link_flags, LIBRARIES)

    def compiled(self, text: str, made: Path) -> Compiled:
        """Compile C text into an object. Failure is a value."""
        direct = self._direct
        if direct is None:
            return compile_files(self.compiler, [text], made, self.flags, timeout=self.timeout, cancelled=self.cancelled)
        with tempfile.TemporaryDirectory(prefix="cc-", dir=made.parent) as scratch:
            source = Path(scratch) / "source0.c"
            source.write_text(text)
            said = self._call(direct.compile_command([source]))
            if said.ok:
                source.with_suffix(".o").replace(made)
        return said

    def linked(self, objects: Sequence[Path], made: Path) -> Compiled:
        """Link objects into one file. What the linker does not take, or is called wrongly for, is left to the driver, which makes what was removed of its
        libraries: that takes as long as a first call."""
        direct, timeout = self._direct, self.timeout
        if direct is not None:
            timeout = max(timeout, FIRST_CALL_SECONDS)
            said = self._call(direct.link_command(objects, made))
            if said.ok or said.kind == "compile_timeout":
                return said
        return compile_files(self.compiler, objects, made, self.link_flags, libraries=LIBRARIES, timeout=timeout, cancelled=self.cancelled)

    def _call(self, command: tuple[str, ...]) -> Compiled:
        return call_tool(command, settings.environment_with({}), self.timeout, self.cancelled)
