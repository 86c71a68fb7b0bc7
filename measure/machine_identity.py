"""What a record's times depend on besides its program: the processor, and major.minor of the compiler.

A processor is identified by vendor, family and model, the instructions that kernels use, and its caches, not by its brand: on cloud machines one brand
text stands for several kinds of processors, and one kind has several. Unknown parts are omitted; if all are unknown, the brand text is used.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from ansor.codegen.toolchain import processor_name
from ansor.targets.cpu import caches_of

CPUINFO, CACHES = Path("/proc/cpuinfo"), Path("/sys/devices/system/cpu/cpu0/cache")
_GCC = re.compile(r"cc\b|cc-\d|GCC|\+\+|\bc\d\d\b")  # it reports the name it was started with
Caches = Mapping[tuple[int, str], tuple[int, int]]
"""(level, type) -> (KiB, bytes per line)."""

_X86 = re.compile(r"ssse3|sse4_[12]|avx.*|fma.?|f16c|bmi[12]|amx.*|.*vnni.*|gfni|vaes|vpclmulqdq")
_ARM = re.compile(r"asimd.*|sve.*|sme.*|.*i8mm|.*bf16|neon|vfpv[34].*|fphp|dotprod")

# Linux's field names on each kind of machine -> display words; the first kind with any field present is used.
_NAMES = (
    {"vendor_id": "", "cpu family": "family ", "model": "model "},
    {"CPU implementer": "implementer ", "CPU part": "part ", "CPU variant": "variant "},
    {"uarch": "", "isa": "isa "},
    {"cpu": "", "revision": "revision "},
)


@lru_cache
def processor_identity() -> str:
    """This machine's processor in words: `AuthenticAMD family 25 model 1, features 0f3b5a97, caches 32K 512K 32768K`."""
    try:
        text = CPUINFO.read_text(errors="replace")
    except OSError:
        text = ""
    try:
        caches: Caches = caches_of(CACHES)
    except OSError:
        caches = {}
    return identity_of(text, caches) or processor_name()


def identity_of(cpuinfo: str, caches: Caches) -> str:
    """The processor that the text of /proc/cpuinfo and its caches describe; '' if the text does not say. Kinds of cores are sorted."""
    cores = [dict(_fields(block)) for block in re.split(r"\n\s*\n", cpuinfo)]
    kinds = sorted({words for core in cores if (words := _kind(core))})
    if not kinds:
        return ""
    used = sorted({flag for core in cores for flag in _features(core)})
    features = f", features {hashlib.sha256(' '.join(used).encode()).hexdigest()[:8]}" if used else ""
    sizes = [f"{kib}K" for (_, kind), (kib, _) in sorted(caches.items()) if kind != "Instruction"]
    return _plain(f"{' + '.join(kinds)}{features}{', caches ' + ' '.join(sizes) if sizes else ''}")


def compiler_identity(version: str) -> str:
    """Kind and major.minor of a compiler, from its version text: `zig cc 0.17`, `gcc 12.2`, `clang 19.1`, `myasm 1.0`; else the whole text."""
    bare = re.sub(r"\([^()]*\)", " ", version)
    kind = next((kind for kind, word in (("zig cc", "zig"), ("Apple clang", "Apple clang"), ("clang", "clang")) if word in bare), "")
    stated = re.search(r"version\s+(\d+\.\d+)", bare)
    numbers = [stated[1]] if stated else re.findall(r"(?<![\w.])(\d+\.\d+)", bare)
    if not numbers:
        return _plain(version)
    named = "gcc" if _GCC.search(version) else _plain(bare.partition(numbers[-1])[0]).removesuffix("version").rstrip()
    return f"{kind or named or 'gcc'} {numbers[-1]}"


def _fields(block: str) -> list[tuple[str, str]]:
    found = [(name.strip(), value.strip()) for name, colon, value in (line.partition(":") for line in block.splitlines()) if colon]
    return [(name, value) for name, value in found if value]


def _kind(core: Mapping[str, str]) -> str:
    for names in _NAMES:
        words = " ".join(f"{word}{core[name]}" for name, word in names.items() if name in core)
        if words:
            return words
    return ""


def _features(core: Mapping[str, str]) -> list[str]:
    return [flag for name, wanted in (("flags", _X86), ("Features", _ARM)) for flag in core.get(name, "").split() if wanted.fullmatch(flag)]


def _plain(text: str) -> str:
    """The text on one line and printable: it becomes part of a record's target."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
