from ansor.text import clip, counted, format_rate, format_seconds


def test_seconds_pick_their_unit() -> None:
    assert [format_seconds(s) for s in (2.0, 0.0012345, 3.4e-6, 5e-9)] == ["2 s", "1.234 ms", "3.4 us", "5 ns"]


def test_rate() -> None:
    assert format_rate(2 * 512**3, 0.01) == "26.8 GFLOP/s"
    assert format_rate(1.0, 0.0) == "n/a"


def test_clip_keeps_head_and_tail() -> None:
    assert clip(" short \n") == "short"
    text = clip("a" * 600 + "b" * 600, 100)
    assert text.startswith("a" * 50) and text.endswith("b" * 50) and "1100 characters" in text


def test_counted() -> None:
    assert [counted(n, "kernel") for n in (0, 1, 2)] == ["0 kernels", "1 kernel", "2 kernels"]
