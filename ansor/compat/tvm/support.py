"""`tvm.support`: the features of this build, as TVM reports them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

HERE = {"USE_LLVM": "ON", "USE_THREADS": "ON"}


class Info(Mapping[str, str]):
    """The flags of a build: ON for features of processors, OFF for all others."""

    def __getitem__(self, flag: str) -> str:
        return HERE.get(flag, "OFF")

    def __iter__(self) -> Iterator[str]:
        return iter(HERE)

    def __len__(self) -> int:
        return len(HERE)


def libinfo() -> Mapping[str, str]:
    """Flag -> "ON" or "OFF"."""
    return Info()
