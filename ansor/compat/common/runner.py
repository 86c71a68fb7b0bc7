"""The options of the builders and runners in both of TVM's tuners, and their translation to ours."""

from __future__ import annotations

from ansor.errors import TargetError
from ansor.measure.timing import Stopping, TimingOptions

FLUSH_BYTES = 64 << 20


def check_build_func(build_func: object) -> None:
    """Raise TargetError for a build function other than ours."""
    if build_func != "default":
        raise TargetError(f"asked to build programs with {build_func!r}; give 'default', and name a compiler in the target: llvm -cc=clang")


class TimedRunner:
    """Runs each program in `timeout` seconds. Each of `repeat` costs is the mean of `number` calls, or of more until `min_repeat_ms` has passed."""

    def __init__(
        self, timeout: float, number: int, repeat: int, min_repeat_ms: float, cooldown_interval: float, enable_cpu_cache_flush: bool
    ) -> None:
        self.timeout, self.number, self.repeat, self.min_repeat_ms = timeout, number, repeat, min_repeat_ms
        self.cooldown_interval, self.enable_cpu_cache_flush = cooldown_interval, enable_cpu_cache_flush

    @property
    def timing(self) -> TimingOptions:
        """These options as `TimingOptions`."""
        return TimingOptions(
            number=self.number, repeat=self.repeat, min_repeat_ms=self.min_repeat_ms, stopping=Stopping(contender_repeats=0),
            cooldown_seconds=self.cooldown_interval, flush_bytes=FLUSH_BYTES if self.enable_cpu_cache_flush else 0, timeout_seconds=self.timeout,
        )  # fmt: skip


def farm_text(key: str, host: str, port: int, slots: int | None = None) -> str:
    """The devices that TVM's runners identify by a key and a tracker's address, as text for `ansor.measure.device_kinds`.

    slots: programs in flight at a time; None: the farm decides.
    """
    asked = f"&slots={slots}" if slots is not None else ""
    return f"farm://{f'[{host}]' if ':' in host else host}:{port}?key={key}{asked}"
