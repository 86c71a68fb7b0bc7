import pytest

from ansor.support.text import clip, counted, did_you_mean, format_bytes, format_count, format_left, format_seconds, format_share, parse_bytes


def test_seconds_pick_their_unit() -> None:
    assert [format_seconds(s) for s in (2.0, 0.0012345, 3.4e-6, 5e-9)] == ["2 s", "1.234 ms", "3.4 us", "5 ns"]


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")])
def test_time_left(seconds: float, text: str) -> None:
    assert format_left(seconds) == text


def test_shares_are_percent() -> None:
    assert [format_share(share) for share in (0.0234, 0.0, 1.0)] == ["2.3 %", "0.0 %", "100.0 %"]


def test_bytes_and_counts_have_three_digits() -> None:
    assert [format_bytes(n) for n in (12, 1023, 1024, 98304, 1_060_000)] == ["12 B", "1023 B", "1 KiB", "96 KiB", "1.01 MiB"]
    assert [format_bytes(n) for n in (200 << 20, 3 << 30)] == ["200 MiB", "3 GiB"]
    assert [format_count(n) for n in (7, 999, 1580, 66022, 140000, 22.9e6, -57.8e9)] == ["7", "999", "1.58 k", "66.0 k", "140 k", "22.9 M", "-57.8 G"]


def test_clip_keeps_head_and_tail() -> None:
    assert clip(" short \n") == "short"
    text = clip("a" * 600 + "b" * 600, 100)
    assert text.startswith("a" * 50) and text.endswith("b" * 50) and "1100 characters" in text


def test_counted() -> None:
    assert [counted(n, "kernel") for n in (0, 1, 2)] == ["0 kernels", "1 kernel", "2 kernels"]


def test_articles() -> None:
    from ansor.support.text import with_article

    assert [with_article(word) for word in ("int", "list", "ndarray", "NoneType")] == ["an int", "a list", "an ndarray", "a NoneType"]


def test_similar_names() -> None:
    assert did_you_mean("trails", ["trials", "target"]) == " (did you mean trials?)" and did_you_mean("xyz", ["trials"]) == ""
    assert did_you_mean("thread", ["threads"], "-") == " (did you mean -threads?)"


def test_sizes_that_people_write() -> None:
    assert [parse_bytes(text) for text in ("65536", "64K", "64KiB", "1MB", "2G", "0")] == [65536, 65536, 65536, 1 << 20, 2 << 30, 0]
    assert [parse_bytes(text) for text in ("", "64k", "-1", "1.5M", "K", "64 K", "lots")] == [None] * 7
