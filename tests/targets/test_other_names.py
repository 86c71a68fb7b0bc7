"""Names of LLVM and TVM for processors and options are told with what to write here."""

from __future__ import annotations

import pytest

from ansor.errors import TargetError
from ansor.targets import other_names
from ansor.targets.base import parse_target
from ansor.targets.other_names import PROCESSORS


@pytest.mark.parametrize(("text", "told"), [
    ("core-avx2", "asked for target kind 'core-avx2': write 'cpu -mcpu=haswell'; the kinds are"),
    ("llvm -mcpu=core-avx2", "asked for target cpu with -mcpu=core-avx2, which is -mcpu=haswell here; the processors are"),
    ("haswell", "write 'cpu -mcpu=haswell'"), ("native", "write 'cpu -mcpu=native'"), ("stm32f746g-disco", "write 'micro -board=stm32f746g-disco'"),
    ("c -mcpu=haswell", "kind 'c', which is cpu here; the kinds are"),
    ("llvm -num-cores=4", "'-num-cores=4', which is not one of its options: write -threads=4; the options are"),
    ("llvm -mtriple=aarch64-linux-gnu", ": write the kind arm or armv7 instead, such as 'arm -mcpu=cortex-a72'; the options are"),
    ("llvm -mtriple aarch64-linux-gnu", ": write the kind arm or armv7 instead"),
    ("llvm -mtriple=x86_64-linux-gnu", ": leave it out, the kind says which machine it is"), ("llvm -keys=cpu", ": leave it out, it has no meaning here"),
    ("armv", "(did you mean armv7?)"), ("toaster", "kind 'toaster'; the kinds are"),
])  # fmt: skip
def test_what_to_write_here_is_told(text: str, told: str) -> None:
    with pytest.raises(TargetError) as raised:
        parse_target(text)
    assert told in str(raised.value)


@pytest.mark.parametrize(("here", "kind"), [("x86-64", "arm"), ("ARM", "cpu")])
def test_an_arm_processor_is_of_this_machine_or_another(here: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_names, "architecture_here", lambda: here)
    with pytest.raises(TargetError, match=f"write '{kind} -mcpu=cortex-a72'"):
        parse_target("cortex-a72")


def test_names_elsewhere_are_names_here() -> None:
    for name in PROCESSORS.values():
        assert parse_target(f"cpu -mcpu={name}").mcpu == name
