"""`tvm.device`, `tvm.cpu`: where arrays are. There is one place."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.errors import TargetError

PROCESSORS = ("cpu", "llvm", "c")


@dataclass(frozen=True)
class Device:
    """The processor. `index` is kept, and means nothing."""

    type: str = "cpu"
    index: int = 0

    @property
    def exist(self) -> bool:
        """Whether it is there."""
        return True

    @property
    def device_type(self) -> int:
        """1, which stands for processors in TVM."""
        return 1

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
    """The device that a text names. Raises TargetError unless it is a processor."""
    if dev_type.split()[:1] not in [[kind] for kind in PROCESSORS]:
        raise TargetError(f"asked for the device {dev_type!r}; programs are made for processors: use tvm.cpu()")
    return cpu(dev_id)
