"""Numbers and tool output as short text for people."""


def format_seconds(seconds: float) -> str:
    """Four significant digits and the unit that suits: 0.001234 -> '1.234 ms'."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def format_rate(operations: float, seconds: float) -> str:
    """Floating-point operations per second: '83.2 GFLOP/s'; 'n/a' when no time passed."""
    return f"{operations / seconds / 1e9:.3g} GFLOP/s" if seconds > 0 else "n/a"


def counted(number: int, noun: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def clip(text: str, limit: int = 2000) -> str:
    """At most about `limit` characters: the head and the tail, because tools put the cause in either."""
    text = text.strip()
    if len(text) <= limit:
        return text
    half = max(1, limit // 2)
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
