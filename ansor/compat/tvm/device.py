"""`tvm.device`, `tvm.cpu`: where arrays are. There is one place; other devices can be asked for, and do not exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.errors import TargetError

PROCESSORS = ("cpu", "llvm", "c", "stackvm", "test")
OTHERS = ("cuda", "nvptx", "gpu", "cl", "opencl", "aocl", "aocl_sw_emu", "sdaccel", "vulkan", "metal", "vpi", "rocm", "hexagon", "webgpu", "ext_dev")


@dataclass(frozen=True)
class Device:
    """The processor, or a device that does not exist. `index` is kept, and means nothing."""

    type: str = "cpu"
    index: int = 0

    @property
    def exist(self) -> bool:
        """Whether it is there, so that arrays can be on it: the processor is."""
        return self.type == "cpu"

    @property
    def device_type(self) -> int:
        """1, which stands for processors in TVM, and 0 for what is not there."""
        return int(self.exist)

    @property
    def device_id(self) -> int:
        """The index."""
        return self.index

    def sync(self, stream: object = None) -> None:
        """Nothing: a call has ended when it returns."""

    def __str__(self) -> str:
        return f"{self.type}({self.index})"


def cpu(dev_id: int = 0) -> Device:
    """The processor."""
    return Device("cpu", dev_id)


def device(dev_type: str, dev_id: int = 0) -> Device:
    """The device that a text names, such as `llvm` or `cuda`, whose `exist` is False. Raises TargetError for a name that TVM does not have."""
    name = dev_type.split()[0] if dev_type.split() else ""
    if name not in (*PROCESSORS, *OTHERS):
        raise TargetError(f"asked for the device {dev_type!r}; programs are made for processors: use tvm.cpu()")
    return cpu(dev_id) if name in PROCESSORS else Device(name, dev_id)


def there(given: Device | None) -> Device:
    """The device that arrays are asked to be on; the processor when none is given. Raises TargetError for one that does not exist."""
    found = given or cpu()
    if not found.exist:
        raise TargetError(f"asked for an array on {found}; programs are made for processors: use tvm.cpu()")
    return found


def _named(name: str) -> Callable[..., Device]:
    def of_that_name(dev_id: int = 0) -> Device:
        return Device(name, dev_id)

    of_that_name.__name__, of_that_name.__doc__ = name, f"A device {name!r}, whose `exist` is False."
    return of_that_name


cuda, rocm, opencl, metal, vulkan, ext_dev = map(_named, ("cuda", "rocm", "opencl", "metal", "vulkan", "ext_dev"))
