"""A board without an operating system, as data: its core, memories, counter and console, and how to start it.

This is passed to the harness's C as macros (`bare.h`), and to the linker as addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

OVERFLOW = 0xFFFFFFFF  # ticks of a 32-bit timer
SYSTICK = 0xE000E010
"""Registers of the built-in timer of Cortex-M cores: control, reload, and the 24-bit counter, which counts down."""

ARMV8M = ("cortex_m33", "cortex_m35p", "cortex_m55", "cortex_m85")
"""Cores with the main extension, whose MPU has no guard size."""

Writes = tuple[tuple[int, int], ...]
"""(register, value): 32-bit words to write before the first run, in order. Below 0x1000: the number of a RISC-V CSR."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """bytes: of a vector register, or of an integer one if there are none; group: registers that can hold one vector together, a power of two (LMUL of
    RISC-V)."""

    bytes: int = 4
    group: int = 1


@dataclass(frozen=True, slots=True)
class Core:
    """A processor. architecture: the prefix of the compiler's triples: riscv32, riscv64, thumb. mcpu: the compiler's name, with features.

    floats: whether it has float registers, which decides the calling convention. flags: further compiler flags.
    guard: bytes below the stack that fault when touched, a power of two; 0 without memory protection.
    registers: how many numbers, or vectors, a program can hold.
    features: instructions that intrinsics need.
    """

    architecture: str
    mcpu: str
    floats: bool = False
    flags: tuple[str, ...] = ()
    guard: int = 0
    vectors: Vectors = Vectors()
    registers: int = 12
    features: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """`flags`, and what the architecture needs: for 64-bit RISC-V, code that reaches memory above 2 GiB, where most boards have it."""
        chosen = self.architecture != "riscv64" or any(flag.startswith("-mcmodel=") for flag in self.flags)
        return self.flags if chosen else ("-mcmodel=medany", *self.flags)

    @property
    def widest(self) -> int:
        """Bytes of the widest vector."""
        return self.vectors.bytes * self.vectors.group

    @property
    def protects(self) -> bool:
        """Whether it can keep a candidate from writing elsewhere, by an MPU or PMP."""
        return self.guard > 0 or self.mcpu.split("+")[0] in ARMV8M

    @property
    def triple(self) -> str:
        """The compiler's triple, without an operating system."""
        return f"{self.architecture}-freestanding" + ({True: "-eabihf", False: "-eabi"}[self.floats] if self.architecture == "thumb" else "")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes at addresses. flash: they are persistent, and programs do not write them."""

    name: str
    start: int
    size: int
    flash: bool = False

    @property
    def end(self) -> int:
        """The address after it."""
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts what a run costs. csr: the name of a RISC-V register, or its number (0x..) for a 32-bit one; else `register`, of `bits` bits, at
    `hertz`; it may count down.

    bits: 64 for two words, the low one first. unit: text of a unit (`ansor.targets.unit`); scale: units per tick. setup: writes that start it.
    """

    unit: str
    csr: str = ""
    register: int = 0
    bits: int = 32
    down: bool = False
    hertz: float = 1e6
    scale: float = 1.0
    setup: Writes = ()


@dataclass(frozen=True, slots=True)
class Console:
    """A polled UART: a byte may be written to `data` while `status & mask == ready`. width: bits of both registers. data 0: none.

    htif: the two words of Spike instead. setup: writes that start it. end: how to end a simulator: (register, value), or "semihosting".
    """

    data: int = 0
    status: int = 0
    mask: int = 0
    ready: int = 0
    width: int = 32
    htif: bool = False
    setup: Writes = ()
    end: tuple[int, int] | str = ""


@dataclass(frozen=True, slots=True)
class Watchdog:
    """A timer that ends a program that does not end.

    kind: clint (registers: mtime, mtimecmp); cmsdk, sse (the timers of Arm's subsystems) or stm32 (registers: base address, interrupt line).
    """

    kind: str = ""
    registers: tuple[int, ...] = ()
    hertz: float = 1e6


@dataclass(frozen=True, slots=True)
class Run:
    """How to run a board's images. device: the text of a device; command: starts a simulator, IMAGE stands for the image's path.

    code: the memory for code, '' for that of data. boot: where a core looks for its vectors, '' for the start of code.
    stack: bytes at the end of the data memory. rate: approximate instructions per second.
    step: seconds per instruction on the simulator's own clock; 0 for a real-time board.
    hart: the RISC-V hart that runs programs; others that start with it wait.
    """

    device: str
    command: tuple[str, ...] = ()
    code: str = ""
    boot: str = ""
    stack: int = 4096
    rate: float = 1e8
    step: float = 0.0
    hart: int = 0


@dataclass(frozen=True, slots=True)
class Board:
    """A board. memories: the first that is not flash holds data, and also code unless `run.code` names another. about: a short description."""

    name: str
    about: str
    core: Core
    memories: tuple[Memory, ...]
    counter: Counter
    run: Run
    console: Console = Console()
    watchdog: Watchdog = Watchdog()

    @property
    def data(self) -> Memory:
        """The memory for data."""
        return next(one for one in self.memories if not one.flash)

    @property
    def code(self) -> Memory:
        """The memory for code."""
        return next((one for one in self.memories if one.name == self.run.code), self.data)

    @property
    def boot(self) -> Memory | None:
        """The memory to copy vectors to, if the core looks for them outside the code."""
        return next((one for one in self.memories if one.name == self.run.boot and one != self.code), None)

    def with_code(self, name: str) -> Board:
        """The board with its code in another memory. A simulated Cortex-M core still looks for its vectors in the old place."""
        if name in ("", self.code.name):
            return self
        boot = self.run.boot or self.code.name if self.core.architecture == "thumb" and self.run.command else ""
        return replace(self, run=replace(self.run, code=name, boot=boot))

    def keeps(self, address: int) -> bool:
        """Whether an address is in flash."""
        return any(one.flash and one.start <= address < one.end for one in self.memories)

    @property
    def code_is_apart(self) -> bool:
        """Whether code has its own memory."""
        return self.code != self.data

    @property
    def answer_bytes(self) -> int:
        """Room for a run's answer: a sixteenth of the memory, from 4 to 64 KiB."""
        return max(4 << 10, min(64 << 10, self.data.size // 16))

    @property
    def stack_low(self) -> int:
        """The lowest address of the stack."""
        return self.data.end - self.run.stack

    @property
    def heap_end(self) -> int:
        """Where the memory for buffers ends: below the stack and its guard."""
        return self.stack_low - self.core.guard

    def ticks(self, seconds: float) -> int:
        """Ticks of the watchdog's timer in `seconds` of this machine; 0 if there is no watchdog or it has too few bits:
        then whoever waits ends the program. `OVERFLOW` if the counter overflows before that: a count beyond it would be wrong."""
        rate = self.run.rate * self.run.step if self.run.step else 1.0
        ticks = int(seconds * rate * self.watchdog.hertz) if self.watchdog.kind else 0
        if self.watchdog.kind == "clint" or ticks <= OVERFLOW:
            return ticks
        return OVERFLOW if not self.counter.csr and self.counter.bits <= 32 and self.watchdog.hertz <= self.counter.hertz else 0

    @property
    def counts_systick(self) -> bool:
        """Whether the core's own timer counts, which reports its overflow."""
        return self.core.architecture == "thumb" and self.counter.register == SYSTICK + 8

    @property
    def overflow_seconds(self) -> float:
        """Seconds, by this machine's clock, after which the counter has overflowed; infinite if it cannot, or on a simulator's clock."""
        alone = self.counter.csr.startswith("0x") or not self.counter.csr and self.counter.bits <= 32
        return (1 << (32 if self.counter.csr else self.counter.bits)) / self.counter.hertz if alone and not self.run.step else float("inf")
