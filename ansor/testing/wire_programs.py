"""Machine code for the tests of wires: programs that add, loop forever, and trap. Each runs at any multiple of 256 and needs 256 bytes.

    entry + 0   the code          entry + 64, 68  operands, 32 bits each
    entry + 48  it stops there    entry + 72      the sum

Registers are clobbered; the trapping program may set the trap vector to its own loop, if the processor has one.
"""

from __future__ import annotations

from dataclasses import dataclass

STOP, WORDS, SUM, SIZE = 48, 64, 72, 256


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs for one processor architecture: `adds` ends in a jump to itself at byte 48; `loops` is such a jump; `traps` executes a trapping instruction."""

    adds: bytes
    loops: bytes
    traps: bytes

    def __post_init__(self) -> None:
        if len(self.adds) > WORDS or max(len(self.loops), len(self.traps)) > SIZE or len(self.adds) <= STOP:
            raise ValueError(f"`adds` has {len(self.adds)} bytes; it needs {STOP + 1} to {WORDS}, and `loops` and `traps` at most {SIZE}")


def _at_stop(code: str, nop: str, jump: str) -> bytes:
    """Code padded with `nop` up to byte 48, then a jump to itself."""
    head = bytes.fromhex(code)
    return head + bytes.fromhex(nop) * ((STOP - len(head)) // len(bytes.fromhex(nop))) + bytes.fromhex(jump)


RISCV = Programs(  # 32 and 64 bits, without compressed instructions
    # auipc t0, 0; lw t1, 64(t0); lw t2, 68(t0); add t1, t1, t2; sw t1, 72(t0)
    _at_stop("97020000 03a30204 83a34204 33037300 23a46204", "13000000", "6f000000"),
    bytes.fromhex("6f000000"),
    # auipc t0, 0; addi t0, t0, 32; csrw mtvec, t0; ebreak; nop, 4 times; j .
    bytes.fromhex("97020000 93820202 73905230 73001000") + bytes.fromhex("13000000") * 4 + bytes.fromhex("6f000000"),
)

THUMB = Programs(  # ARMv6-M and later
    # adr r0, words; ldr r1, [r0]; ldr r2, [r0, #4]; adds r1, r1, r2; str r1, [r0, #8]
    _at_stop("0fa0 0168 4268 8918 8160", "00bf", "fee7"),
    bytes.fromhex("fee7"),
    # adr r0, handler; adds r0, #1; adr r1, table (byte 128); str r0, [r1, #12]; ldr r2, vtor; str r1, [r2]; mov sp, r1; bkpt #0; handler: b .; nop;
    # vtor: .word 0xe000ed08
    bytes.fromhex("03a0 0130 1ea1 c860 024a 1160 8d46 00be fee7 00bf 08ed00e0"),
)

X86_64 = Programs(
    # lea words(%rip), %rax; movl (%rax), %ecx; addl 4(%rax), %ecx; movl %ecx, 8(%rax)
    _at_stop("488d0539000000 8b08 034804 894808", "90", "ebfe"),
    bytes.fromhex("ebfe"),
    bytes.fromhex("0f0b"),  # ud2
)

AARCH64 = Programs(
    # adr x0, words; ldr w1, [x0]; ldr w2, [x0, #4]; add w1, w1, w2; str w1, [x0, #8]
    _at_stop("00020010 010040b9 020440b9 2100020b 010800b9", "1f2003d5", "00000014"),
    bytes.fromhex("00000014"),
    bytes.fromhex("000020d4"),  # brk #0
)
