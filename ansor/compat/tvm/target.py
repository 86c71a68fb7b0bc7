"""`tvm.target`: what programs are made for."""

from collections.abc import Sequence

from ansor.compat.auto_scheduler.target_text import Kind as TargetKind  # noqa: F401
from ansor.compat.auto_scheduler.target_text import Target as Target
from ansor.compat.auto_scheduler.target_text import target_of as target_of
from ansor.compat.tvm.missing import of_target as __getattr__  # noqa: F401  # what is not here raises
from ansor.errors import TargetError

create = Target
_ARM_BOARDS = {
    "unknown": ("-model=unknown",),
    "rasp4b64": ("-model=bcm2711", "-mtriple=aarch64-linux-gnu", "-mattr=+neon", "-mcpu=cortex-a72"),
    "rk3399": ("-model=rk3399", "-mtriple=aarch64-linux-gnu", "-mattr=+neon"),
}


def cuda(model: str = "unknown", arch: str | None = None, options: str | Sequence[str] | None = None) -> Target:
    """A GPU of CUDA, to be looked at: programs are made for processors."""
    return _target("cuda", [*([f"-arch={arch}"] if arch else []), f"-model={model}"], options)


def rocm(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A GPU of ROCm, to be looked at."""
    return _target("rocm", [f"-model={model}"], options)


def mali(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A Mali GPU, to be looked at."""
    return _target("opencl", ["-device=mali", f"-model={model}"], options)


def bifrost(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A Bifrost GPU, to be looked at."""
    return _target("opencl", ["-device=bifrost", f"-model={model}"], options)


def intel_graphics(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A GPU of Intel's, to be looked at."""
    return _target("opencl", ["-device=intel_graphics", f"-model={model}", "-thread_warp_size=16"], options)


def arm_cpu(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An ARM processor, of a board with a name of TVM's. Raises TargetError for a board that is not known."""
    if model not in _ARM_BOARDS:
        boards = ", ".join(_ARM_BOARDS)
        raise TargetError(f"asked for the ARM board {model!r}; there are {boards}: or write its target, llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    return _target("llvm", ["-device=arm_cpu", *_ARM_BOARDS[model]], options)


def _target(kind: str, words: Sequence[str], options: str | Sequence[str] | None) -> Target:
    return Target(" ".join([kind, *words, *([options] if isinstance(options, str) else options or [])]))
