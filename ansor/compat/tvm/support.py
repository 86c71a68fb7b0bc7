"""`tvm.support`: what this build can do, as TVM tells it of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

HERE = {"USE_LLVM": "ON", "USE_THREADS": "ON"}


class Info(Mapping[str, str]):
    """Flags of a build: what is for processors is on, and every other one off."""

    def __getitem__(self, flag: str) -> str:
        return HERE.get(flag, "OFF")

    def __iter__(self) -> Iterator[str]:
        return iter(HERE)

    def __len__(self) -> int:
        return len(HERE)


def libinfo() -> Mapping[str, str]:
    """Flag -> "ON" or "OFF"."""
    return Info()
