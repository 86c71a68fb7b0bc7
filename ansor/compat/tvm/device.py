"""`tvm.device`, `tvm.cpu`: where arrays are stored. Only the CPU exists; other devices can be named but not used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.errors import TargetError

PROCESSORS = ("cpu", "llvm", "c", "stackvm", "test")
OTHERS = ("cuda", "nvptx", "gpu", "cl", "opencl", "aocl", "aocl_sw_emu", "sdaccel", "vulkan", "metal", "vpi", "rocm", "hexagon", "webgpu", "ext_dev")


@dataclass(frozen=True)
class Device:
    """The processor, or a device that does not exist. `index` is kept but ignored."""

    type: str = "cpu"
    index: int = 0

    @property
    def exist(self) -> bool:
        """Whether arrays can be stored on it: true for the processor only."""
        return self.type == "cpu"

    @property
    def device_type(self) -> int:
        """TVM's code: 1 for processors, 0 for devices that do not exist."""
        return int(self.exist)

    @property
    def device_id(self) -> int:
        """The index."""
        return self.index

    def sync(self, stream: object = None) -> None:
        """Do nothing: calls are finished when they return."""

    def __str__(self) -> str:
        return f"{self.type}({self.index})"


def cpu(dev_id: int = 0) -> Device:
    """The processor."""
    return Device("cpu", dev_id)


def device(dev_type: str, dev_id: int = 0) -> Device:
    """The device that a text such as `llvm` or `cuda` names. Its `exist` is False unless it is the CPU. Raises TargetError for a name unknown to TVM."""
    name = dev_type.split()[0] if dev_type.split() else ""
    if name not in (*PROCESSORS, *OTHERS):
        raise TargetError(f"asked for the device {dev_type!r}; only CPUs are supported: use tvm.cpu()")
    return cpu(dev_id) if name in PROCESSORS else Device(name, dev_id)


def there(given: Device | None) -> Device:
    """The device for arrays, by default the processor. Raises TargetError if it does not exist."""
    found = given or cpu()
    if not found.exist:
        raise TargetError(f"asked for an array on {found}; only CPUs are supported: use tvm.cpu()")
    return found


def _named(name: str) -> Callable[..., Device]:
    def of_that_name(dev_id: int = 0) -> Device:
        return Device(name, dev_id)

    of_that_name.__name__, of_that_name.__doc__ = name, f"The device {name!r}. Its `exist` is False."
    return of_that_name


cuda, rocm, opencl, metal, vulkan, ext_dev = map(_named, ("cuda", "rocm", "opencl", "metal", "vulkan", "ext_dev"))
