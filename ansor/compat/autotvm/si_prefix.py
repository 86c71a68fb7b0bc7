"""Converts rates to a unit: `12.30 GFLOPS`. Source: AutoTVM 0.9, `autotvm.utils`."""

from ansor.errors import ConfigError

_EXPONENTS = {prefix: 3 * place for place, prefix in enumerate(("y", "z", "a", "f", "p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Z", "Y"), -8)}


def format_si_prefix(x: float, si_prefix: str) -> float:
    """x in that unit: 2.5e9 is 2.5 in "G". Raises ConfigError for an unknown prefix."""
    if si_prefix not in _EXPONENTS:
        raise ConfigError(f"asked for a rate in {si_prefix!r}; prefixes are {', '.join(map(repr, _EXPONENTS))}")
    return float(x) / 10.0 ** _EXPONENTS[si_prefix]
