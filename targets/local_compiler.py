"""The C compiler for targets whose programs run on this machine."""

from __future__ import annotations

from ansor.codegen.building import Toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.errors import TargetError
from ansor.targets.architecture import foreign


def c_compiler(target: str, mcpu: str, command: str) -> Toolchain:
    """A C compiler for a processor; target: in messages, '' for a kind of another package, which has names of its own for processors.

    Raises TargetError for a processor of another architecture, and ToolchainError if there is no compiler.
    """
    why = foreign(target, mcpu) if target else ""
    if why:
        raise TargetError(why)
    return CToolchain(find_compiler(command), mcpu)
