"""Configurations whose splits stay open until their sizes are read."""

from collections.abc import Callable

import pytest

import ansor
from ansor import te
from ansor.templates.entities import SplitEntity
from ansor.templates.open_config import OpenConfig
from ansor.templates.space import ConfigSpace


def space() -> ConfigSpace:
    found = ConfigSpace()
    found.define_split("tile", 12, num_outputs=3)
    found.define_knob("flag", [False, True])
    found.define_reorder("order", [found.axis(2), found.axis(3)], "all")
    return found


def test_splits_that_are_only_applied_stay_open() -> None:
    config = OpenConfig(space(), {})
    a = te.placeholder((12,), name="A")
    s = ansor.create_schedule(te.compute((12,), lambda i: a[i] + 1.0, name="C"))
    assert len(config["tile"].apply(s, "C", s["C"].op.axis[0])) == 3 and not config.looked_at
    (step,) = s.sketch().steps
    assert str(step) == "Split(stage='C', loop='i', lengths='tile', parts=3)" and s.sketch().choices[0].size == len(space().space_map["tile"])


def test_reading_a_length_counts_as_a_read() -> None:
    config = OpenConfig(space(), {})
    a = te.placeholder((12,), name="A")
    s = ansor.create_schedule(te.compute((12,), lambda i: a[i] + 1.0, name="C"))
    outer, *_ = config["tile"].apply(s, "C", s["C"].op.axis[0])
    assert outer.extent == 12 and list(config.looked_at) == ["tile"]


LOOKS: list[Callable[[OpenConfig], object]] = [
    lambda config: config["tile"].size, lambda config: config["tile"] == SplitEntity([-1, 1, 1]), lambda config: hash(config["tile"]),
    lambda config: str(config["tile"]), lambda config: config.to_json_dict(), repr, lambda config: config.get_flatten_feature(),
]  # fmt: skip


@pytest.mark.parametrize("look", LOOKS)
def test_every_read_of_sizes_is_recorded(look: Callable[[OpenConfig], object]) -> None:
    config = OpenConfig(space(), {})
    look(config)
    assert "tile" in config.looked_at


def test_reads_of_other_knobs_are_recorded() -> None:
    config = OpenConfig(space(), {"tile": 5, "order": 1})
    assert config["flag"].val is False and list(config.looked_at) == ["flag"]
    assert config["order"].perm == [1, 0] and config["tile"].size == space().get(5)["tile"].size and list(config.looked_at) == ["flag", "order", "tile"]
    assert OpenConfig(space(), {}).get_other_option() == {"flag": False}
