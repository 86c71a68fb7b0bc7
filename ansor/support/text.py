"""Formats numbers and tool output as short, readable text, and parses sizes."""

import re
from collections.abc import Iterable, Sequence


def format_seconds(seconds: float) -> str:
    """Four significant digits and a suitable unit: 0.001234 -> '1.234 ms'."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def format_left(seconds: float) -> str:
    """`42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_share(share: float) -> str:
    """A percentage with one decimal: 0.0234 -> '2.3 %'."""
    return f"{100 * share:.1f} %"


def parse_bytes(text: str) -> int | None:
    """The bytes of a size such as 65536, 64K or 1MiB; None for any other text."""
    match = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None


def format_bytes(count: float) -> str:
    """Three significant digits and a suitable unit: 98304 -> '96 KiB'."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            value = count / (1 << shift)
            return f"{value:.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"
    return f"{count:.0f} B"


def format_count(count: float) -> str:
    """Three significant digits of a large number: 71234 -> '71.2 k'."""
    for scale, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(count) >= scale:
            value = count / scale
            return f"{value:.{0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2}f}{unit}"
    return f"{count:.0f}"


def counted(number: int, noun: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def ratio_text(now: float, before: float) -> str:
    """How a cost has changed: `1.25 times as fast`, `2.00 times as slow`, `the same`."""
    if abs(now / before - 1) < 0.005:
        return "the same"
    return f"{before / now:.2f} times as fast" if now < before else f"{now / before:.2f} times as slow"


def with_article(word: str) -> str:
    """`a list`, `an int`, `an ndarray`."""
    return f"{'an' if word[:1] in 'aeiouAEIOU' or word.startswith('nd') else 'a'} {word}"


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """` (did you mean trials?)`, or nothing if no known name is similar. prefix: goes before the name, such as `-`."""
    from difflib import get_close_matches  # only errors need it

    close = get_close_matches(name, list(known), 1)
    return f" (did you mean {prefix}{close[0]}?)" if close else ""


def clip(text: str, limit: int = 2000) -> str:
    """At most about `limit` characters: the head and the tail, because tools may print the cause in either."""
    text = text.strip()
    if len(text) <= limit:
        return text
    half = max(1, limit // 2)
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def one_line(error: BaseException) -> str:
    """An error's class and text on one line: `KeyError: 'weight'`."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or the name of its class if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def listed(names: Sequence[str], limit: int = 4) -> str:
    """`a`, `a and b`, `a, b and c`; beyond `limit` names `a, b, c, d and 3 more`."""
    shown = list(names[:limit])
    if len(names) > limit:
        return f"{', '.join(shown)} and {len(names) - limit} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
