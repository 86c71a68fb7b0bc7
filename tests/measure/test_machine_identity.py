"""What a processor and a compiler are, told from texts of machines that are not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.codegen.toolchain import processor_name
from ansor.measure import machine_identity
from ansor.measure.machine_identity import Caches, compiler_identity, identity_of, processor_identity

CACHES: Caches = {(1, "Data"): (32, 64), (1, "Instruction"): (32, 64), (2, "Unified"): (1024, 64), (3, "Unified"): (32768, 64)}
ZEN = """processor\t: {number}
vendor_id\t: AuthenticAMD
cpu family\t: 26
model\t\t: 2
model name\t: {name}
stepping\t: 1
microcode\t: 0xb00215a
cpu MHz\t\t: {megahertz}
flags\t\t: fpu sse2 ssse3 sse4_1 avx avx2 fma f16c bmi1 {flags}

"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes asimddp {flags}
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: {part}
CPU revision\t: 1

"""


def zen(name: str = "AMD EPYC", megahertz: float = 2400.1, flags: str = "avx512f avx512_vnni", cores: int = 2) -> str:
    return "".join(ZEN.format(number=number, name=name, megahertz=megahertz, flags=flags) for number in range(cores))


def test_the_brand_the_clock_and_the_number_of_cores_say_nothing() -> None:
    here = identity_of(zen(), CACHES)
    assert here.startswith("AuthenticAMD family 26 model 2, features ") and here.endswith(", caches 32K 1024K 32768K")
    for other in (zen("AMD EPYC 9B45"), zen(megahertz=3100.0), zen(cores=64), zen(flags="avx512_vnni avx512f hypervisor tsc_known_freq")):
        assert identity_of(other, CACHES) == here


def test_model_features_and_caches_tell_processors_of_one_brand_apart() -> None:
    found = {
        identity_of(zen(), CACHES), identity_of(zen().replace("model\t\t: 2", "model\t\t: 17"), CACHES), identity_of(zen(flags=""), CACHES),
        identity_of(zen(flags="avx512f avx512_vnni amx_int8"), CACHES), identity_of(zen(), {**CACHES, (3, "Unified"): (16384, 64)}), identity_of(zen(), {}),
    }  # fmt: skip
    assert len(found) == 6


def test_arm_and_cores_of_two_kinds() -> None:
    big, small = ARM.format(part="0xd0c", flags="sve"), ARM.format(part="0xd05", flags="")
    assert identity_of(big, {}).startswith("implementer 0x41 part 0xd0c variant 0x1, features ")
    both = identity_of(small + big, CACHES)
    assert both == identity_of(big + small, CACHES) and "part 0xd05 variant 0x1 + implementer 0x41 part 0xd0c" in both
    assert identity_of(ARM.format(part="0xd0c", flags=""), {}) != identity_of(big, {})


@pytest.mark.parametrize(("text", "identity"), [
    ("processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdcv\nuarch\t\t: sifive,u74-mc\n", "sifive,u74-mc isa rv64imafdcv"),
    ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\nrevision\t: 2.2\n", "POWER9, altivec supported revision 2.2"),
    ("", ""), ("processor\t: 0\n", ""), ("\0\n:\nvendor_id\n", ""), ("vendor_id\t: \x1b[2JGenuine\n", "[2JGenuine"),
])  # fmt: skip
def test_other_kinds_and_texts_that_say_nothing(text: str, identity: str) -> None:
    assert identity_of(text, {}) == identity and identity.isprintable()


def test_machines_without_proc_and_sys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_identity, "CPUINFO", tmp_path / "none")
    monkeypatch.setattr(machine_identity, "CACHES", tmp_path / "none")
    processor_identity.cache_clear()
    try:
        assert processor_identity() == processor_name() != ""
    finally:
        processor_identity.cache_clear()


@pytest.mark.parametrize(("version", "identity"), [
    ("zig cc 0.17.1", "zig cc 0.17"), ("zig cc 0.16.0-dev.12+ab", "zig cc 0.16"), ("gcc (Debian 12.2.0-14) 12.2.0", "gcc 12.2"),
    ("x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0-23ubuntu4) 13.2.0", "gcc 13.2"), ("gcc (crosstool-NG 1.25.0) 12.2.0", "gcc 12.2"),
    ("cc (GCC) 13.2.1 20240101 (Red Hat 13.2.1-6)", "gcc 13.2"), ("Debian clang version 14.0.6", "clang 14.0"),
    ("Ubuntu clang version 19.1.7 (++20250114-1~exp1~20250114.102)", "clang 19.1"), ("Apple clang version 15.0.0 (clang-1500.3.9.4)", "Apple clang 15.0"),
    ("my own compiler", "my own compiler"), ("myasm 1.0", "myasm 1.0"), ("Board assembler version 3.14.2", "Board assembler 3.14"),
    ("c99 (Debian 12.2) 12.2.0", "gcc 12.2"), ("1.5", "gcc 1.5"),
])  # fmt: skip
def test_compilers_are_major_and_minor(version: str, identity: str) -> None:
    assert compiler_identity(version) == identity == compiler_identity(identity)
