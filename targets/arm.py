"""The kinds `arm` (64-bit) and `armv7` (32-bit): processors of Linux boards and servers, cross-compiled from any machine.

Each processor is a row of data. Cache sizes are those of common products; `-l2` and the like set a board's own. Vectors are NEON's, 16 bytes,
even with SVE: kernels are written for vectors of a known length, and cores with wider vectors issue two or four of these at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ansor.codegen.building import Toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.dialect import Dialect
from ansor.codegen.toolchain import find_compiler
from ansor.errors import TargetError
from ansor.ir.intrinsics import features_of
from ansor.targets import cpu, neon
from ansor.targets.base import MCPU, Bounds, CodeGenerator, Kind, Option, Target, register_kind
from ansor.targets.device_dtypes import of_bfloat16
from ansor.targets.hardware import Caches, Hardware, Memory
from ansor.targets.prior import Issue, Overhead, Prior, Traffic
from ansor.targets.unit import INSTRUCTIONS

EMBEDDED = "zig"  # the only compiler that can cross-compile without further tools
INTRINSICS = (*neon.MATRICES, *neon.DOTS)
COMPILER_NAMES = {"fp16": "fullfp16", "dotprod": "dotprod", "i8mm": "i8mm"}
FEATURES = tuple(sorted({*features_of(INTRINSICS), "fp16"}))
RULES = cpu.RULES  # the same rules, with which the search finds other programs


@dataclass(frozen=True)
class Processor:
    """One core and its shared cache. Sizes in KiB.

    features: of `FEATURES`.
    """

    l1: int
    l2: int
    l3: int
    prior: Prior
    features: str = ""
    registers: int = 32


# In-order dual-issue cores: half a vector of 16 bytes per cycle, or a whole one.
_SMALL = Prior(Issue(arithmetic=0.5, loads=0.5, latency=8.0, window=8.0, each=0.5),
               Overhead(call=60.0, result=3.0, spill=4.0, loop=4.0), Traffic((8.0, 4.0, 2.0), way_bytes=8192))
_MIDDLE = Prior(Issue(arithmetic=1.0, loads=0.5, latency=4.0, window=8.0, each=0.3),
                Overhead(call=40.0, result=3.0, spill=4.0, loop=4.0), Traffic((8.0, 4.0, 4.0), way_bytes=8192))
# Out-of-order cores that issue three to eight instructions per cycle.
_LARGE = Prior(Issue(arithmetic=2.0, loads=1.0, latency=7.0, window=128.0, each=0.1),
               Overhead(call=20.0, result=2.0), Traffic((16.0, 8.0, 4.0), way_bytes=16384))
_SERVER = Prior(Issue(arithmetic=2.0, loads=2.0, latency=4.0, window=128.0, each=0.1),
                Overhead(call=16.0), Traffic((32.0, 16.0, 8.0), way_bytes=16384))
_WIDE = Prior(Issue(arithmetic=4.0, loads=3.0, latency=4.0, window=256.0, each=0.1),
              Overhead(call=12.0, result=1.0), Traffic((64.0, 32.0, 8.0), way_bytes=16384))
_OLD = Prior(Issue(arithmetic=0.5, loads=0.5, latency=8.0, window=8.0, each=0.5),
             Overhead(call=80.0, result=3.0, spill=4.0, loop=4.0), Traffic((8.0, 4.0, 2.0), way_bytes=8192))

_8_2 = "dotprod fp16"
_8_6 = "dotprod fp16 i8mm"
ARM = {
    "cortex-a35": Processor(32, 512, 0, _SMALL),
    "cortex-a53": Processor(32, 512, 0, _SMALL),
    "cortex-a55": Processor(32, 128, 1024, _MIDDLE, _8_2),
    "cortex-a57": Processor(32, 2048, 0, _LARGE),
    "cortex-a72": Processor(32, 1024, 0, _LARGE),
    "cortex-a73": Processor(64, 2048, 0, _LARGE),
    "cortex-a75": Processor(64, 256, 2048, _LARGE, _8_2),
    "cortex-a76": Processor(64, 512, 2048, _SERVER, _8_2),
    "cortex-a78": Processor(32, 512, 4096, _SERVER, _8_2),
    "cortex-a510": Processor(32, 256, 4096, _MIDDLE, _8_6),
    "cortex-a710": Processor(64, 512, 8192, _SERVER, _8_6),
    "cortex-x1": Processor(64, 1024, 8192, _WIDE, _8_2),
    "cortex-x2": Processor(64, 1024, 8192, _WIDE, _8_6),
    "neoverse-n1": Processor(64, 1024, 32768, _SERVER, _8_2),
    "neoverse-n2": Processor(64, 1024, 32768, _SERVER, _8_6),
    "neoverse-v1": Processor(64, 1024, 32768, _WIDE, _8_6),
    "neoverse-v2": Processor(64, 2048, 65536, _WIDE, _8_6),
    "a64fx": Processor(64, 8192, 0, _SERVER, "fp16"),
    "apple-m1": Processor(128, 12288, 8192, _WIDE, _8_2),
    "apple-m2": Processor(128, 16384, 8192, _WIDE, _8_6),
    "apple-m3": Processor(128, 16384, 8192, _WIDE, _8_6),
}
ARMV7 = {
    "cortex-a5": Processor(32, 512, 0, _OLD, registers=16),
    "cortex-a7": Processor(32, 512, 0, _OLD, registers=16),
    "cortex-a8": Processor(32, 256, 0, _OLD, registers=16),
    "cortex-a9": Processor(32, 512, 0, _OLD, registers=16),
    "cortex-a15": Processor(32, 1024, 0, _LARGE, registers=16),
    "cortex-a17": Processor(32, 1024, 0, _LARGE, registers=16),
    "cortex-a53": Processor(32, 512, 0, _SMALL, registers=16),
}

OPTIONS = (
    MCPU,
    Option("threads", "hardware.threads", "count", "threads that run a kernel", always=True),
    Option("mattr", "hardware.features", "features", "instructions that it has or lacks", known=FEATURES),
    Option("l1", "hardware.caches.l1_bytes", "size", "first-level data cache of a core", Bounds(1024, 1 << 26)),
    Option("l2", "hardware.caches.l2_bytes", "size", "second-level cache of a core", Bounds(0)),
    Option("l3", "hardware.caches.l3_bytes", "size", "shared cache", Bounds(0)),
    Option("stack", "hardware.memory.stack_bytes", "size", "local buffers of one thread", Bounds(4096)),
    Option("workspace", "hardware.memory.workspace_bytes", "size", "whole intermediates of a kernel, 0 for no limit", Bounds(0)),
)


def _default(kind: str, mcpu: str) -> Target:
    """The target for a processor, with one thread: a board's number of cores is unknown here."""
    processors = ARM if kind == "arm" else ARMV7
    core = processors.get(mcpu.replace("_", "-"))
    if core is None:
        raise TargetError(f"asked for target {kind} with -mcpu={mcpu}; the processors are {', '.join(processors)}")
    caches = Caches(core.l1 << 10, core.l2 << 10, core.l3 << 10)
    hardware = Hardware(1, neon.VECTOR_BYTES, core.registers, caches, Memory(stack_bytes=128 * 1024), frozenset(core.features.split()))
    return Target(kind, mcpu.replace("_", "-"), hardware, rules=RULES, dialect=_DIALECTS[kind], prior=core.prior)


def _toolchain(triple: str, processors: Mapping[str, Processor], target: Target) -> Toolchain:
    """The embedded compiler, for the processor and the features that differ from the table (set by `-mattr`, or by a kind derived from ours)."""
    core, found = processors.get(target.mcpu), target.hardware.features
    usual = frozenset(core.features.split() if core else ())
    mcpu = "+".join([target.mcpu, *(COMPILER_NAMES[name] for name in sorted(found - usual))])
    gone = [COMPILER_NAMES[name] for name in sorted(usual - found)]  # appended below as -FEATURE; dashes in the processor's name become underscores
    return CToolchain(find_compiler(EMBEDDED), mcpu, triple, ("-".join([f"-mcpu={mcpu.replace('-', '_')}", *gone]),) if gone else ())


_DIALECTS = {"arm": Dialect(by_element=True), "armv7": Dialect(index_bits=32, by_element=True)}

_AARCH64 = CodeGenerator(toolchain=partial(_toolchain, "aarch64-linux-musl", ARM), intrinsics=INTRINSICS, refusal=of_bfloat16)
_AARCH32 = CodeGenerator(toolchain=partial(_toolchain, "arm-linux-musleabihf", ARMV7), refusal=of_bfloat16)
AARCH64 = register_kind(Kind("arm", partial(_default, "arm"), OPTIONS, "cortex-a72", INSTRUCTIONS, "qemu-aarch64", _AARCH64))
AARCH32 = register_kind(Kind("armv7", partial(_default, "armv7"), OPTIONS, "cortex-a7", INSTRUCTIONS, "qemu-arm", _AARCH32))
