"""Compiler flags for the core of a board: for the package's own compiler, zig, and for others."""

from __future__ import annotations

from ansor.codegen.image.board import Core

SOURCE_FLAGS = ("-std=gnu99", "-ffreestanding", "-ffunction-sections", "-fdata-sections")
"""For C that users build themselves, with any compiler."""

ZIG_FLAGS = ("-g0", "-fno-sanitize=all", "-fno-unwind-tables")
"""Turns off zig's defaults that are useless on a board."""

_UNITS = {"vfp4d16sp": "fpv4-sp-d16", "fp_armv8d16sp": "fpv5-sp-d16", "mve_fp": "auto"}
_LETTERS = "mafdcv"


def zig_flags(core: Core) -> tuple[str, ...]:
    """For `zig cc`."""
    return ("-target", core.triple, f"-mcpu={core.mcpu}", *core.options, *library_flags(core))


def library_flags(core: Core) -> tuple[str, ...]:
    """For linking. zig's library computes doubles if the core does not; for 64-bit RISC-V it assumes memory below 2 GiB unless built with -fPIC."""
    return ("-fPIC",) if core.architecture == "riscv64" and "d" not in core.mcpu.split("+") else ()


def gcc_flags(core: Core) -> tuple[str, ...]:
    """For the architecture's GCC, such as arm-none-eabi-gcc and riscv64-unknown-elf-gcc."""
    return (*(_thumb if core.architecture == "thumb" else _riscv)(core), *core.options)


def clang_flags(core: Core) -> tuple[str, ...]:
    """For clang."""
    return (f"--target={core.architecture}-none-{'eabi' if core.architecture == 'thumb' else 'elf'}", *gcc_flags(core))


def gcc_name(core: Core) -> str:
    """The usual name of the architecture's GCC."""
    return "arm-none-eabi-gcc" if core.architecture == "thumb" else "riscv64-unknown-elf-gcc"


def _thumb(core: Core) -> tuple[str, ...]:
    name, *features = core.mcpu.split("+")
    flags = ("-mthumb", f"-mcpu={name.replace('_', '-')}")
    if not core.floats:
        return (*flags, "-mfloat-abi=soft")
    return (*flags, "-mfloat-abi=hard", f"-mfpu={[_UNITS[one] for one in features if one in _UNITS][-1]}")


def _riscv(core: Core) -> tuple[str, ...]:
    bits = core.architecture.removeprefix("riscv")
    features = core.mcpu.split("+")[1:]
    letters = "".join(one for one in _LETTERS if one in features)
    more = "".join(f"_{one}" for one in features if len(one) > 1)
    floats = ("d" if "d" in features else "f") if core.floats else ""
    return (f"-march=rv{bits}i{letters}{more}", f"-mabi={'ilp32' if bits == '32' else 'lp64'}{floats}")
