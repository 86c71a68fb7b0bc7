"""Builds the C libraries that a search needs while this process does something else: on a new machine that takes a second, as does reading a model."""

from __future__ import annotations

import threading
from contextlib import suppress

from ansor.codegen.network_library import network_library
from ansor.codegen.tape_library import tape_library
from ansor.codegen.toolchain import find_compiler
from ansor.errors import AnsorError


def build_early() -> threading.Thread:
    """Start building, in a thread of its own. Whoever needs the libraries finds them, waits, or builds them and reports what is wrong."""
    thread = threading.Thread(target=_build, name="ansor-libraries", daemon=True)
    thread.start()
    return thread


def _build() -> None:
    with suppress(AnsorError, OSError, RuntimeError):
        compiler = find_compiler()
        for library in (tape_library, network_library):
            library(compiler)
