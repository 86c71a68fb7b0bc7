"""The kind `cpu`: a processor with an operating system, this one unless `-mcpu` names another."""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ansor.codegen.building import Toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.errors import TargetError
from ansor.ir import intrinsics
from ansor.support import settings
from ansor.targets import neon, x86_intrinsics
from ansor.targets.architecture import foreign
from ansor.targets.base import MCPU, Bounds, CodeGenerator, Kind, Option, OwnAlgorithms, Target, register_kind
from ansor.targets.hardware import Caches, Hardware
from ansor.targets.other_names import processor_hint
from ansor.targets.prior import OUT_OF_ORDER

INTRINSICS = (*x86_intrinsics.INTRINSICS, *neon.DOTS)
FEATURES = intrinsics.features_of(INTRINSICS)
RULES = (
    "always_inline",  # first and exclusive: all rules below then look past free stages
    "simplify_const_tensor",  # exclusive: a stage that multiplies by constants is unrolled, never tiled for reuse
    "add_rfactor",  # in addition to tiling, not instead of it; before packing, because partial sums are read through fused loops
    "pack_constants",  # exclusive: reading a constant in loop order is never slower; then the same stage is visited again
    "add_cache_write",  # creates the consumer that the next rule needs
    "pack_operands",  # in addition to the next: a copy has a cost, so both ways are tried
    "reduce_in_vectors",  # in addition to the next: which is faster depends on the lengths
    "tensorize",  # exclusive: tiles like the two below, with an instruction inside; without the instruction, a program is several times slower
    "multi_level_tiling_with_fusion",  # in addition to plain tiling, unless the stage was made to be fused
    "multi_level_tiling",  # exclusive: with data reuse, an untiled program is not worth a trial
    "skip_stage",
)


@dataclass(frozen=True)
class Processor:
    """Capabilities of one core. Sizes in KiB; l3 is shared."""

    vector_bytes: int
    vector_registers: int
    l1: int
    l2: int
    l3: int
    features: frozenset[str] = frozenset()


_V1 = frozenset({"sse2"})
_V3 = _V1 | {"avx2"}
_V4 = _V3 | {"avx512bw", "avx512vl"}
_VNNI = _V4 | {"avx512vnni"}
_BF16 = _VNNI | {"avx512bf16"}
_DOT = frozenset({"dotprod"})
TILES = frozenset({"amx-bf16", "amx-int8"})
"""Features that need the registers of AMX, which the system has to allow."""

PROCESSORS = {
    "x86-64": Processor(16, 16, 32, 256, 4096, _V1),
    "x86-64-v2": Processor(16, 16, 32, 256, 4096, _V1),
    "x86-64-v3": Processor(32, 16, 32, 256, 8192, _V3),
    "x86-64-v4": Processor(64, 32, 32, 1024, 16384, _V4),
    "sandybridge": Processor(32, 16, 32, 256, 8192, _V1),
    "ivybridge": Processor(32, 16, 32, 256, 8192, _V1),
    "haswell": Processor(32, 16, 32, 256, 8192, _V3),
    "broadwell": Processor(32, 16, 32, 256, 8192, _V3),
    "skylake": Processor(32, 16, 32, 256, 8192, _V3),
    "skylake-avx512": Processor(64, 32, 32, 1024, 16384, _V4),
    "cascadelake": Processor(64, 32, 32, 1024, 16384, _VNNI),
    "icelake-server": Processor(64, 32, 48, 1280, 32768, _VNNI),
    "sapphirerapids": Processor(64, 32, 48, 2048, 65536, _BF16 | {"avxvnni"} | TILES),
    "alderlake": Processor(32, 16, 48, 1280, 16384, _V3 | {"avxvnni"}),
    "znver1": Processor(32, 16, 32, 512, 8192, _V3),
    "znver2": Processor(32, 16, 32, 512, 16384, _V3),
    "znver3": Processor(32, 16, 32, 512, 32768, _V3),
    "znver4": Processor(64, 32, 32, 1024, 32768, _BF16),
    "znver5": Processor(64, 32, 48, 1024, 32768, _BF16 | {"avxvnni"}),
    "cortex-a53": Processor(16, 32, 32, 512, 0),
    "cortex-a72": Processor(16, 32, 32, 1024, 0),
    "cortex-a76": Processor(16, 32, 64, 512, 2048, _DOT),
    "neoverse-n1": Processor(16, 32, 64, 1024, 32768, _DOT),
    "neoverse-v1": Processor(16, 32, 64, 1024, 32768, _DOT | {"i8mm"}),
    "apple-m1": Processor(16, 32, 128, 4096, 0, _DOT),
}

CPUINFO_NAMES = {
    "avx512_vnni": "avx512vnni", "avx512_bf16": "avx512bf16", "avx_vnni": "avxvnni", "amx_int8": "amx-int8", "amx_bf16": "amx-bf16", "asimddp": "dotprod",
}  # fmt: skip

OPTIONS = (
    MCPU,
    Option("threads", "hardware.threads", "count", "threads that run a kernel", always=True),
    Option("cc", "compiler", "text", "C compiler command; the embedded one if omitted", starts_program=True),
    Option("vector-bytes", "hardware.vector_bytes", "count", "bytes of a vector register", Bounds(4, 1 << 12, power=True)),
    Option("num-registers", "hardware.vector_registers", "count", "vector registers", Bounds(8, 1 << 10)),
    Option("mattr", "hardware.features", "features", "instructions that it has or lacks", known=FEATURES),
    Option("l1", "hardware.caches.l1_bytes", "size", "first-level data cache of a core", Bounds(1024, 1 << 26)),
    Option("l2", "hardware.caches.l2_bytes", "size", "second-level cache of a core", Bounds(0)),
    Option("l3", "hardware.caches.l3_bytes", "size", "shared cache", Bounds(0)),
    Option("cache-line", "hardware.caches.line_bytes", "count", "bytes of a cache line", Bounds(8, 1 << 12, power=True)),
    Option("stack", "hardware.memory.stack_bytes", "size", "local buffers of one thread", Bounds(4096)),
    Option("workspace", "hardware.memory.workspace_bytes", "size", "whole intermediates of a kernel, 0 for no limit", Bounds(0)),
)


def default(mcpu: str) -> Target:
    """The target for a processor, with as many threads as this process may use."""
    if mcpu == "native":
        return _native()
    found = PROCESSORS.get(mcpu.replace("_", "-"))
    if found is None:
        raise TargetError(f"asked for target cpu with -mcpu={mcpu}{processor_hint(mcpu, PROCESSORS)}; the processors are native, {', '.join(PROCESSORS)}")
    return _target(mcpu, found, 64)


def _target(mcpu: str, core: Processor, line: int) -> Target:
    caches = Caches(core.l1 << 10, core.l2 << 10, core.l3 << 10, line)
    hardware = Hardware(settings.cores(), core.vector_bytes, core.vector_registers, caches, features=core.features)
    return Target("cpu", mcpu, hardware, rules=RULES, prior=OUT_OF_ORDER)


def _native() -> Target:
    core, line = _detected()
    return _target("native", core, line)


@lru_cache
def _detected() -> tuple[Processor, int]:
    """This machine's core and its cache line in bytes. What the system does not report comes from a plain processor of its kind."""
    flags = _cpu_flags(Path("/proc/cpuinfo"))
    core, line = vectors_of(platform.machine(), flags), 64
    core = replace(core, features=(core.features | features_of(flags)) - (frozenset() if tiles_allowed() else TILES))
    for (level, kind), (kib, bytes_in_line) in caches_of(Path("/sys/devices/system/cpu/cpu0/cache")).items():
        if kind != "Instruction" and level in (1, 2, 3):
            core = replace(core, **{f"l{level}": kib})  # type: ignore[arg-type]  # l1, l2 or l3
            line = bytes_in_line or line
    return core, line


def vectors_of(machine: str, flags: frozenset[str]) -> Processor:
    """The plainest processor with these capabilities: `machine` from uname, `flags` from /proc/cpuinfo."""
    if machine.lower() in ("aarch64", "arm64"):
        return PROCESSORS["cortex-a72"]
    if {"avx512f", "avx512vl", "avx512dq", "avx512bw"} <= flags:
        return PROCESSORS["x86-64-v4"]
    if {"avx2", "fma"} <= flags:
        return PROCESSORS["x86-64-v3"]
    return PROCESSORS["x86-64"]


def tiles_allowed() -> bool:
    """Whether Linux lets processes use AMX's registers. Sandboxes and old versions do not. It is only asked here; generated code asks for them when it runs,
    since signal stacks have to be larger then."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    arch_prctl, what_is_there, tile_data, found = 158, 0x1021, 18, ctypes.c_uint64(0)
    done = ctypes.CDLL(None).syscall(arch_prctl, what_is_there, ctypes.byref(found))
    return bool(done == 0 and found.value >> tile_data & 1)


def features_of(flags: frozenset[str]) -> frozenset[str]:
    """The features that intrinsics need, by compilers' names, from flags of /proc/cpuinfo."""
    return frozenset({CPUINFO_NAMES.get(flag, flag) for flag in flags}) & frozenset(FEATURES)


def _cpu_flags(path: Path) -> frozenset[str]:
    try:
        text = path.read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def caches_of(folder: Path) -> dict[tuple[int, str], tuple[int, int]]:
    """(level, type) -> (KiB, bytes per line), as Linux lists the caches of one core; empty if there is no such list."""
    found = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            line = (index / "coherency_line_size").read_text().strip()
        except OSError:
            continue
        if level.isdecimal() and size.endswith("K") and size[:-1].isdecimal():
            found[int(level), kind] = int(size[:-1]), int(line) if line.isdecimal() else 0
    return found


def _toolchain(target: Target) -> Toolchain:
    """A C compiler for the processor. A kind derived from this one may have processors of its own, of which nothing is known here."""
    why = foreign(str(target), target.mcpu) if target.mcpu.replace("_", "-") in PROCESSORS else ""
    if why:
        raise TargetError(why)
    return CToolchain(find_compiler(target.compiler), target.mcpu)


CODEGEN = CodeGenerator(toolchain=_toolchain, intrinsics=INTRINSICS, algorithms=OwnAlgorithms(("channels_first",)))
CPU = register_kind(Kind("cpu", default, OPTIONS, codegen=CODEGEN))
