"""Spaces, their points, and fallbacks."""

from collections import Counter
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.errors import AnsorError, ConfigError, InstantiationError
from ansor.templates.entities import AnnotateEntity, Entity, OtherOptionEntity, ReorderEntity, SplitEntity
from ansor.templates.fallback import FallbackConfigEntity
from ansor.templates.knob import Axis
from ansor.templates.space import ConfigEntity, ConfigSpace


def convolution() -> ConfigSpace:
    """Sizes 2, 7, 9, 2."""
    space = ConfigSpace()
    space.define_split("tile_ic", 3, num_outputs=2)
    space.define_split("tile_oc", 64, num_outputs=2)
    space.define_split("tile_ow", 112, num_outputs=2, filter=lambda entity: entity.size[-1] <= 64)
    space.define_knob("unroll_kw", [True, False])
    return space


def every_kind() -> ConfigSpace:
    space = ConfigSpace()
    y, x = space.axis(24), space.axis(10)
    space.define_split("tile", y, "verbose", num_outputs=3)
    space.define_reorder("order", [y, x], "all")
    space.define_annotate("ann", [y, x], "try_unroll_vec")
    space.define_knob("step", [0, False, 1, True, 1.0, "x", None, [1, [2]]])
    return space


def test_an_index_of_a_real_log() -> None:
    space = convolution()
    config = space.get(193)
    assert space.dims == [2, 7, 9, 2] and len(space) == 252 and space.point2knob(193) == [1, 5, 4, 1] and space.knob2point([1, 5, 4, 1]) == 193
    assert [config["tile_ic"].size, config["tile_oc"].size, config["tile_ow"].size] == [[-1, 3], [-1, 32], [-1, 8]] and config["unroll_kw"].val is False
    assert str(config) == "[('tile_ic', [-1, 3]), ('tile_oc', [-1, 32]), ('tile_ow', [-1, 8]), ('unroll_kw', False)],None,193"


def test_iteration_is_over_names_in_the_order_of_definition() -> None:
    names = ["tile_ic", "tile_oc", "tile_ow", "unroll_kw"]
    assert list(convolution()) == names == list(convolution().get(7))
    assert repr(convolution()).splitlines()[:2] == [
        "ConfigSpace (len=252, space_map=", "   0 tile_ic: Split(policy=factors, product=3, num_outputs=2) len=2",
    ]  # fmt: skip


def test_the_first_knob_is_the_fastest() -> None:
    space = every_kind()
    tables = [space.space_map[name].entities for name in reversed(list(space))]
    found = [[space.get(index)[name] for name in reversed(list(space))] for index in range(len(space))]
    assert all(a is b for got, wanted in zip(found, product(*tables), strict=True) for a, b in zip(got, wanted, strict=True))


@pytest.mark.parametrize("index", [-1, 252])
def test_indices_out_of_range_raise(index: int) -> None:
    space = convolution()
    assert not space.is_index_valid(index) and space.is_index_valid(0) and space.is_index_valid(251)
    with pytest.raises(IndexError, match="points run from 0 to 251"):
        space.get(index)


@given(st.integers(0, len(every_kind()) - 1))
def test_configurations_are_found_by_their_values(index: int) -> None:
    space = every_kind()
    config = space.get(index)
    handmade = ConfigEntity(-1, None, {name: config[name] for name in config})
    assert space.find(handmade) == index == space.knob2point(space.point2knob(index))
    assert ConfigEntity.from_json_dict(config.to_json_dict()) == config  # type: ignore[arg-type]
    assert convolution().find(config) is None


@pytest.mark.parametrize("outer, index", [(14, 193), (-1, 193), (13, None)])
def test_explicit_first_sizes_are_found(outer: int, index: int | None) -> None:
    """As in the first record of tophub's llvm log."""
    sizes = {"tile_ic": [1, 3], "tile_oc": [2, 32], "tile_ow": [outer, 8]}
    splits: dict[str, Entity] = {name: SplitEntity(size) for name, size in sizes.items()}
    assert convolution().find(ConfigEntity(-1, None, {**splits, "unroll_kw": OtherOptionEntity(False)})) == index


def test_sizes_with_a_tail_are_found() -> None:
    space = ConfigSpace()
    space.define_split("x", 10, "power2", num_outputs=2)
    assert space.find(ConfigEntity(-1, None, {"x": SplitEntity([3, 4])})) == 2
    assert space.find(ConfigEntity(-1, None, {"x": SplitEntity([-1, 0])})) is None


def test_values_outside_the_tables_are_not_found() -> None:
    config = ConfigEntity(3, None, {**{name: convolution().get(3)[name] for name in convolution()}, "tile_oc": SplitEntity([-1, 5])})
    assert convolution().find(config) is None


def test_configurations_compare_by_values_with_their_types() -> None:
    one, two = ConfigEntity(0, None, {"x": OtherOptionEntity(1)}), ConfigEntity(0, None, {"x": OtherOptionEntity(True)})
    assert one != two and one == ConfigEntity(0, None, {"x": OtherOptionEntity(1)}) and one != ConfigEntity(1, None, {"x": OtherOptionEntity(1)})
    assert hash(one) == hash(ConfigEntity(0, None, {"x": OtherOptionEntity(1)})) and one != "x"


def test_spaces_longer_than_len() -> None:
    space = ConfigSpace()
    for place in range(70):
        space.define_knob(f"k{place}", [False, True])
    assert space.range_length == 2**70 and space.get(2**69)["k69"].val is True and 0 <= space.get_rand_index(rng=Random(0)) < 2**70
    with pytest.raises(OverflowError):
        len(space)


def test_numpy_indices_are_logged_as_integers() -> None:
    space = convolution()
    assert type(space.get(np.int64(5)).to_json_dict()["index"]) is int  # type: ignore[arg-type]


def test_next_indices() -> None:
    space = convolution()
    assert space.get_next_index(0) == 1 and space.get_next_index(5, 3) == 8 and space.get_next_index(5, -5) == 0
    assert space.get_next_index(251) is None and space.get_next_index(0, -1) is None
    assert space.get_next_index(7, end=8) is None and space.get_next_index(3, start=5) is None and space.get_next_index(250, end=9999) == 251


@given(st.integers(0, 30), st.integers(0, 40), st.sets(st.integers(-5, 40)), st.integers(0, 99))
def test_random_indices(start: int, end: int, excluded: set[int], seed: int) -> None:
    space = ConfigSpace()
    space.define_knob("x", range(32))
    allowed = set(range(start, min(end, 32))) - excluded
    if not allowed:
        with pytest.raises(ConfigError, match="none is left"):
            space.get_rand_index(start=start, end=end, to_exclude=excluded, rng=Random(seed))
        return
    rng = Random(seed)
    found = Counter(space.get_rand_index(start=start, end=end, to_exclude=excluded, rng=rng) for _ in range(400 if len(allowed) < 8 else 1))
    assert set(found) <= allowed and (len(allowed) >= 8 or set(found) == allowed)


def test_neighbours_differ_in_one_knob() -> None:
    space, rng = convolution(), Random(1)
    start, found = space.point2knob(100), Counter[int]()
    for _ in range(2000):
        other = space.point2knob(space.random_next_index(100, rng=rng))
        (place,) = [place for place in range(4) if other[place] != start[place]]
        found[space.knob2point(other)] += 1
    assert len(found) == 1 + 6 + 8 + 1
    assert ConfigSpace().random_next_index(0) == 0 and space.random_walk(5, rng=Random(3)) == space.random_next_index(5, rng=Random(3))


def test_errors_are_collected() -> None:
    config = convolution().get(0)
    config.check()
    assert config.valid()
    config.raise_error("too many threads")
    config.raise_error("too much memory")
    assert not config.valid() and config.errors == ["too many threads", "too much memory"]
    with pytest.raises(InstantiationError, match="too many threads; too much memory"):
        config.check()
    assert issubclass(InstantiationError, AnsorError) and convolution().get(0).valid()


def test_flop_adds_up() -> None:
    space = ConfigSpace()
    space.add_flop(2)
    space.add_flop(0.5)
    assert space.flop == 2.5


def test_a_template_sees_first_values_while_collecting_and_its_own_after() -> None:
    def template(cfg: Any) -> tuple[list[int], list[Axis]]:
        axes = cfg.define_split("tile", cfg.axis(8), num_outputs=3)
        cfg.define_reorder("order", axes, "all")
        cfg.define_annotate("ann", axes[1:], "try_unroll")
        cfg.define_knob("k", [3, 5])
        return cfg["tile"].size, axes

    space = ConfigSpace()
    assert template(space)[0] == [-1, 1, 1] and len(space) == 10 * 6 * 4 * 2
    config = space.get(3)
    assert template(config) == ([-1, 8, 1], [Axis(None, 0), Axis(None, 1), Axis(None, 2)])
    with pytest.raises(ConfigError, match="asked for knob 'tiles'; this configuration has 'tile', 'order', 'ann', 'k'"):
        config["tiles"]


def test_a_redefined_knob_keeps_its_position() -> None:
    space = convolution()
    space.define_split("tile_oc", 8, num_outputs=2)
    assert space.dims == [2, 4, 9, 2] and list(space)[1] == "tile_oc"


def test_features() -> None:
    space = ConfigSpace()
    space.define_split("s", 8, "candidate", num_outputs=2, candidate=[[2, 4]])
    space.define_reorder("r", [1, 2, 3], "candidate", candidate=[[3, 1, 2]])
    space.define_annotate("a", [8, 8, 8], "bind_gpu")
    space.define_knob("o", [True])
    assert space.get(0).get_other_option() == {"o": True}
    feature = space.get(0).get_flatten_feature()
    one_hot = [[0.0] * place + [1.0] + [0.0] * (10 - place) for place in (10, 3, 6)]
    assert feature.dtype == np.float32 and feature.tolist() == [2, 4, 2, 0, 1, *sum(one_hot, []), 1]
    with pytest.raises(ConfigError, match="features of knob 'x', whose value is 'y'"):
        ConfigEntity(0, None, {"x": OtherOptionEntity("y")}).get_flatten_feature()


@pytest.mark.parametrize("change, message", [
    ({"index": "0"}, "index is '0'"), ({"index": -2}, "index is -2"), ({"index": True}, "index is True"), ({"code_hash": 3}, "code_hash is 3"),
    ({"entity": {}}, "entity is {}"), ({"entity": [["x", "sp"]]}, "knob from"), ({"entity": [[1, "sp", [1]]]}, "knob from"), ({"entity": ["xsp"]}, "knob from"),
    ({"entity": [["x", "sp", []]]}, "type 'sp'"), ({"entity": [["x", "sp", [1.5]]]}, "type 'sp'"), ({"entity": [["x", "sp", 4]]}, "is a list"),
    ({"entity": [["x", "re", [0, 2]]]}, "type 're'"), ({"entity": [["x", "an", [None]]]}, "type 'an'"), ({"entity": [["x", "zz", [1]]]}, "type 'zz'"),
    ({"entity": [["x", "ot", 1], ["x", "ot", 2]]}, "two values"), ({"entity": [["x" * 999, "sp", [0.5] * 999]]}, r"\.\.\."),
])  # fmt: skip
def test_json_of_other_types(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        ConfigEntity.from_json_dict({"index": 0, "code_hash": None, "entity": [], **change})
    assert len(str(error.value)) < 300


def test_constraints_are_refused() -> None:
    assert list(ConfigEntity(-1, "", {}, [])) == []
    with pytest.raises(ConfigError, match="with constraints .* call cfg.raise_error"):
        ConfigEntity(-1, "", {}, ["x < 3"])


def test_json_without_a_part() -> None:
    with pytest.raises(ConfigError, match="without code_hash, entity"):
        ConfigEntity.from_json_dict({"index": 0})


def test_json() -> None:
    entities: dict[str, Entity] = {"s": SplitEntity([-1, 4]), "r": ReorderEntity([1, 0]), "a": AnnotateEntity(["vec", "none"]), "o": OtherOptionEntity("nchw")}
    config = ConfigEntity(-1, "1a2b", entities)
    held = [["s", "sp", [-1, 4]], ["r", "re", [1, 0]], ["a", "an", ["vec", "none"]], ["o", "ot", "nchw"]]
    assert config.to_json_dict() == {"index": -1, "code_hash": "1a2b", "entity": held}


def fallback(extent: int = 128) -> FallbackConfigEntity:
    config = FallbackConfigEntity()
    config.define_split("tile", extent, num_outputs=3)
    config.define_knob("unroll", [False, True])
    return config


def test_fallback_splits() -> None:
    for extent, limits, sizes in (128, [-1, 8, 4], [4, 8, 4]), (49, [-1, 8, 4], [7, 7, 1]), (1, [-1, 8, 4], [1, 1, 1]), (64, [-1, 1, -1], [1, 1, 64]):
        config = fallback(extent)
        assert config["tile"].size == [-1, 1, 1] and config.is_fallback and not ConfigSpace().is_fallback
        config.fallback_split("tile", limits)
        assert config["tile"].size == sizes
        config.define_split("tile", extent, num_outputs=3)
        assert config["tile"].size == sizes  # a set value is kept
    with pytest.raises(ConfigError, match="give limits of at least 1"):
        fallback().fallback_split("tile", [-1, 1, 0])
    with pytest.raises(ConfigError, match="one limit per loop"):
        fallback().fallback_split("tile", [-1, 1])
    with pytest.raises(ConfigError, match="has the splits 'tile'"):
        fallback().fallback_split("unroll", [-1])


def reference(sizes: list[int], unroll: bool) -> tuple[Any, None]:
    return SimpleNamespace(config=ConfigEntity(0, None, {"tile": SplitEntity(sizes), "unroll": OtherOptionEntity(unroll)})), None


def test_fallback_from_records_of_other_shapes() -> None:
    config = fallback(56)  # 1 2 4 7 8 14 28 56
    config.fallback_with_reference_log([reference([-1, 3, 5], False), reference([1, 7, 4], True), reference([-1, 8, 2], False), reference([-1, 56], False)])
    assert config["tile"].size == [2, 7, 4] and config["unroll"].val is True
    assert str(config) == "[('tile', [2, 7, 4]), ('unroll', True)],None"


def test_fallback_without_a_similar_record_changes_nothing() -> None:
    config = fallback()
    config.fallback_with_reference_log([(SimpleNamespace(config=ConfigEntity(0, None, {})), None)])
    config.fallback_with_reference_log([])
    assert str(config) == str(fallback())


def test_a_value_set_by_hand() -> None:
    config = fallback()
    config["tile"] = SplitEntity([-1, 16, 2])
    config.define_split("tile", 128, num_outputs=3)
    config.define_knob("unroll", [True])
    assert config["tile"].size == [-1, 16, 2] and config["unroll"].val is True


@pytest.mark.parametrize("candidate", [5, "fast", None])
def test_a_knob_takes_several_values(candidate: object) -> None:
    with pytest.raises(ConfigError, match="knob 'x' with candidate .*; give a list of its values"):
        ConfigSpace().define_knob("x", candidate)  # type: ignore[arg-type]  # that is the point
