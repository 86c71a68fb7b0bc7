"""`tvm.target`: targets, by kind."""

from collections.abc import Callable, Sequence

from ansor.compat.auto_scheduler.target_text import Kind as TargetKind  # noqa: F401
from ansor.compat.auto_scheduler.target_text import Target as Target
from ansor.compat.auto_scheduler.target_text import target_of as target_of
from ansor.compat.tvm.missing import of_target as __getattr__  # noqa: F401  # missing names raise
from ansor.errors import TargetError

create = Target
_ARM_BOARDS = {
    "unknown": ("-model=unknown",),
    "rasp4b64": ("-model=bcm2711", "-mtriple=aarch64-linux-gnu", "-mattr=+neon", "-mcpu=cortex-a72"),
    "rk3399": ("-model=rk3399", "-mtriple=aarch64-linux-gnu", "-mattr=+neon"),
}


def _device(kind: str, words: str, what: str) -> Callable[..., Target]:
    def of_that_kind(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
        return _target(kind, [*words.split(), f"-model={model}"], options)

    of_that_kind.__doc__ = f"{what}, for inspection only: programs run on CPUs."
    return of_that_kind


rocm = _device("rocm", "", "A ROCm GPU")
mali = _device("opencl", "-device=mali", "A Mali GPU")
bifrost = _device("opencl", "-device=bifrost", "A Bifrost GPU")
intel_graphics = _device("opencl", "-device=intel_graphics -thread_warp_size=16", "An Intel GPU")


def cuda(model: str = "unknown", arch: str | None = None, options: str | Sequence[str] | None = None) -> Target:
    """A CUDA GPU, for inspection only: programs run on CPUs."""
    return _target("cuda", [*([f"-arch={arch}"] if arch else []), f"-model={model}"], options)


def arm_cpu(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """The ARM processor of a board, by TVM's name for the board. Raises TargetError for an unknown board."""
    if model not in _ARM_BOARDS:
        boards = ", ".join(_ARM_BOARDS)
        raise TargetError(f"asked for the ARM board {model!r}; boards are {boards}; or write a target such as llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    return _target("llvm", ["-device=arm_cpu", *_ARM_BOARDS[model]], options)


def _target(kind: str, words: Sequence[str], options: str | Sequence[str] | None) -> Target:
    return Target(" ".join([kind, *words, *([options] if isinstance(options, str) else options or [])]))
