from ansor.cost_model.cache_sets import FirstCache, reached, room, sets_met

LINE = 64


def taken(rows: int, run: int, stride: int) -> float:
    """Of `rows` runs of `run` bytes, `stride` bytes apart."""
    each, (met,) = float(-(-run // LINE)), sets_met([float(stride)], FirstCache())
    return float(room(rows * each, reached(min(each, 64.0), float(rows), met, FirstCache()), FirstCache()))


def test_rows_of_an_odd_number_of_lines_spread_over_all_sets() -> None:
    assert taken(64, 64, 65 * LINE) == 64 * LINE
    assert taken(640, 128, 999 * LINE) == 1280 * LINE


def test_rows_a_power_of_two_apart_crowd_a_few_sets() -> None:
    assert taken(64, 128, 1024) == 128 * LINE * 8  # every sixteenth set, and the one beside it
    assert taken(64, 64, 4096) == 64 * LINE * 64  # all in one set
    assert taken(64, 64, 8192) == 64 * LINE * 64


def test_few_lines_take_no_more_than_a_set_each() -> None:
    assert taken(1, 64, 4096) == LINE * 64  # the set that holds it may not hold more of others: as full as the fullest
    assert taken(2, 32, 100) == 2 * LINE * 32
