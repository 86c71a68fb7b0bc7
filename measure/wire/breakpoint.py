"""Sets the breakpoint of a program behind a RISC-V debug module: an ebreak in writable memory, a hardware breakpoint elsewhere."""

from __future__ import annotations

from ansor.measure.wire.debug_module import DebugModule
from ansor.measure.wire.program_buffer import Memory
from ansor.measure.wire.wire import WireError

EBREAK = (0x00100073).to_bytes(4, "little")
TSELECT, TDATA1, TDATA2 = 0x7A0, 0x7A1, 0x7A2
# mcontrol: executing the address, in machine, supervisor or user mode, enters debug mode; only the debugger may change it.
_KIND, _DEBUGGER, _ENTER, _MODES, _EXECUTE = 2, 1, 1 << 12, 1 << 6 | 1 << 4 | 1 << 3, 1 << 2


def set_breakpoint(module: DebugModule, memory: Memory, address: int) -> bool:
    """Make the processor halt before it executes `address`. Returns whether it took a hardware breakpoint, which must be cleared.

    Raises WireError if neither is possible."""
    try:
        memory.write(address, EBREAK)
        if memory.read(address, len(EBREAK)) == EBREAK:
            return False
    except WireError as error:
        # Memory refused; if the wire broke instead, it fails again below.
        refused: WireError | None = error
    else:
        refused = None
    wanted = _KIND << module.bits - 4 | _DEBUGGER << module.bits - 5 | _ENTER | _MODES | _EXECUTE
    module.write_register(TSELECT, 0)
    module.write_register(TDATA1, wanted)
    module.write_register(TDATA2, address)
    if module.read_register(TDATA1) & (_ENTER | _EXECUTE) != _ENTER | _EXECUTE or module.read_register(TDATA2) != address:
        found = "an ebreak cannot be written there, and the processor has no hardware breakpoint"
        raise WireError(f"asked to run until 0x{address:x}: {found}; choose an address in writable memory") from refused
    return True


def clear_breakpoint(module: DebugModule) -> None:
    """Free the hardware breakpoint."""
    module.write_register(TDATA1, 0)
