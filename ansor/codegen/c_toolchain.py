"""Builds shared libraries or programs from C text with a C compiler, for this machine or another."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ansor.codegen.artifact import LIBRARY, PROGRAM, Artifact
from ansor.codegen.building import BuildOutput
from ansor.codegen.identity import code_digests
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiled, Compiler, prepare
from ansor.codegen.tools import CallLimits, Tools
from ansor.codegen.trial.manifest import program_text
from ansor.codegen.trial.program import SHARED, link_flags, machine_flags, prepare_program, trial_objects, triple_here
from ansor.errors import ToolchainError

TOGETHER = 8  # candidates per compiler call
OBJECTS = ("-c", "-g0", "-ffunction-sections")
# Names of file-scope functions and variables, which must differ between candidates in one file.
_STATIC = re.compile(r"^static\b[^;{}()=]*?\b(\w+)\s*(?:\(|=|;|\[)", re.MULTILINE)


@dataclass(frozen=True)
class CToolchain:
    """A compiler for one processor. `triple`: of the target system, '' for this one; `extra`: flags after all others.

    apart: build a library for each text, also of those that share a call of the compiler. Kernels are kept and loaded one by one.
    """

    compiler: Compiler
    mcpu: str = "native"
    triple: str = ""
    extra: tuple[str, ...] = ()
    apart: bool = False

    @property
    def version(self) -> str:
        """The compiler's version."""
        return self.compiler.version

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of a shared library."""
        return (*self.compiler.flags(self.mcpu), *self._machine, *self.extra)

    @property
    def _machine(self) -> tuple[str, ...]:
        return ("-target", self.triple) if self.triple else ()

    @property
    def architecture(self) -> str:
        """The architecture of its programs, by compilers' names: `aarch64`."""
        return self._program_triple.partition("-")[0]

    @property
    def _program_triple(self) -> str:
        return self.triple or triple_here()

    @property
    def _program_flags(self) -> tuple[str, ...]:
        kept = (flag for flag in self.compiler.flags(self.mcpu) if flag not in SHARED)
        return (*kept, "-fomit-frame-pointer", *machine_flags(self.compiler, self._program_triple), *self.extra)  # one more register

    def forms(self) -> tuple[str, ...]:
        """See `Toolchain`; no libraries for other systems, as nothing here could load them."""
        return (PROGRAM,) if self.triple else (LIBRARY, PROGRAM)

    def together(self, form: str) -> int:
        """See `Toolchain`; fewer where each text is linked alone: then devices wait less for the first program, and cores for each other's last kernels."""
        return TOGETHER if form == LIBRARY and not self.apart else TOGETHER // 2

    def prepare(self, form: str) -> None:
        """Make the compiler's slow first call for this processor. Raises ToolchainError if it cannot build for it."""
        if form not in self.forms():
            raise ToolchainError(f"asked for the form {form!r}, but C compilers build {' and '.join(self.forms())}: choose another device")
        if form == PROGRAM:
            prepare_program(self.compiler, self._program_triple, self._program_flags)
        else:
            prepare(self.compiler, self.mcpu, self._machine)

    def build(self, sources: Sequence[CSource], form: str, stem: Path, *, timeout: float, cancelled: threading.Event | None = None) -> BuildOutput:
        """See `Toolchain`. Digests are computed from the object before linking."""
        limits = CallLimits(timeout, cancelled)
        return self._library(sources, stem, limits) if form == LIBRARY and not self.apart else self._each(form, sources, stem, limits)

    def _library(self, sources: Sequence[CSource], stem: Path, limits: CallLimits) -> BuildOutput:
        """Build one library for all texts."""
        symbols, text = together(sources)
        made, path = stem.with_suffix(".o"), stem.with_suffix(".so")
        tools = self._tools(LIBRARY, limits)
        compiled = tools.compiled([text], [made])
        if not compiled.ok:
            return BuildOutput((), compiled)
        digests = code_digests(made, symbols)
        linked = tools.linked([made], path)
        made.unlink()
        artifacts = [Artifact(one, path, symbol, LIBRARY, digests.get(symbol, "")) for one, symbol in zip(sources, symbols, strict=True)]
        return _build_output(artifacts, compiled, linked)

    def _each(self, form: str, sources: Sequence[CSource], stem: Path, limits: CallLimits) -> BuildOutput:
        """Build one file per text. One compiler call serves all: its start takes as long as a small text."""
        tools, texts = self._tools(form, limits), [program_text(one) if form == PROGRAM else one.text for one in sources]
        paths = [stem.with_suffix(f".{number}") for number in range(len(sources))] if len(sources) > 1 else [stem.with_suffix("")]
        objects = [path.with_name(f"{path.name}.o") for path in paths]
        compiled = tools.compiled(texts, objects)
        if not compiled.ok:
            return BuildOutput((), compiled)
        artifacts, seconds = [], 0.0
        for one, made, path in zip(sources, objects, paths, strict=True):
            digest = code_digests(made, [one.entry]).get(one.entry, "")
            around = trial_objects(self.compiler, self._program_triple, pool=one.threads > 1) if form == PROGRAM else []
            linked = tools.linked([made, *around], path)
            made.unlink()
            seconds += linked.seconds
            if not linked.ok:
                break
            artifacts.append(Artifact(one, path, one.entry, form, digest))
        return _build_output(artifacts, compiled, replace(linked, seconds=seconds))

    def _tools(self, form: str, limits: CallLimits) -> Tools:
        if form == PROGRAM:
            return Tools(self.compiler, (*self._program_flags, *OBJECTS), link_flags(self.compiler, self._program_triple), limits)
        return Tools(self.compiler, (*self.flags, *OBJECTS), self.flags, limits)


def _build_output(artifacts: Sequence[Artifact], compiled: Compiled, linked: Compiled) -> BuildOutput:
    said = Compiled(linked.kind, linked.text, compiled.seconds + linked.seconds, linked.command)
    return BuildOutput(tuple(artifacts) if linked.ok else (), said)


def together(sources: Sequence[CSource]) -> tuple[list[str], str]:
    """The entry points and text of one file with all sources."""
    if len(sources) == 1:
        return [sources[0].entry], sources[0].text
    symbols = [f"ansor_candidate_{index}" for index in range(len(sources))]
    return symbols, "\n".join(apart(source, symbol) for source, symbol in zip(sources, symbols, strict=True))


def apart(source: CSource, symbol: str, *others: str) -> str:
    """A candidate's text with its file-scope names, and those others, made unique."""
    names = dict.fromkeys((*_STATIC.findall(source.text), *others))
    renamed = {source.entry: symbol, **{name: f"{symbol}_{name}" for name in names if name != source.entry}}
    defines = [f"#define {old} {new}" for old, new in renamed.items() if old != new]
    undefines = [f"#undef {old}" for old in renamed]
    return "\n".join([*defines, f'#line 1 "{source.entry}.c"', source.text, *undefines, ""])
