"""Checks operators and writes their texts to files. Writes plain loops, which serve as references, to C files."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ansor.codegen.artifact import Artifact
from ansor.codegen.building import BuildOutput
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiled
from ansor.errors import AnsorError
from ansor.vta.columns import columns_of
from ansor.vta.compiled import operator_from_text

FORM = "vta program"


def is_operator(source: CSource) -> bool:
    """Whether a source is the text of an operator; others are C."""
    return source.text.startswith("{")


class VtaToolchain:
    """Little has to be built: the text of an operator contains its instructions, which are checked here."""

    version, flags = "ansor-vta 1.0", ()

    def forms(self) -> tuple[str, ...]:
        """See `Toolchain`."""
        return (FORM,)

    def together(self, form: str) -> int:
        """See `Toolchain`."""
        del form
        return 1

    def prepare(self, form: str) -> None:
        """Nothing is slow the first time."""

    def build(self, sources: Sequence[CSource], form: str, stem: Path, *, timeout: float, cancelled: threading.Event | None = None) -> BuildOutput:
        """See `Toolchain`."""
        del timeout, cancelled
        start, artifacts = time.monotonic(), []
        for number, source in enumerate(sources):
            path, digest = stem.with_name(f"{stem.name}-{number}.{'vta' if is_operator(source) else 'c'}"), ""
            if is_operator(source):
                try:
                    operator = operator_from_text(source.text)
                    columns_of(operator.words, operator.configuration)
                except AnsorError as error:
                    return BuildOutput((), Compiled("compile", str(error), time.monotonic() - start, ()))
                digest = hashlib.sha256(operator.words.tobytes() + operator.uops.tobytes()).hexdigest()
            path.write_text(source.text)
            artifacts.append(Artifact(source, path, source.entry, form, digest))
        return BuildOutput(tuple(artifacts), Compiled("", "", time.monotonic() - start, ()))
