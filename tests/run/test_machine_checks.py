from dataclasses import replace

import pytest

from ansor.errors import TargetError
from ansor.run.machine_checks import check_loads_here
from ansor.targets import cpu
from ansor.targets.base import Kind, parse_target, register_kind


def test_networks_for_other_devices_are_refused_with_what_to_use() -> None:
    check_loads_here(parse_target("cpu -threads=1"))
    kind = register_kind(Kind("faraway", lambda mcpu: cpu.default(mcpu), cpu.OPTIONS, device="board"))
    target = parse_target("cpu -threads=1")
    target = replace(target, kind=kind.name)
    with pytest.raises(TargetError, match="whose programs run on board, not in this process; tune its kernels"):
        check_loads_here(target)
