"""The parts of TVM's target texts that logs are looked up by: `llvm -mcpu=skylake -model=unknown`."""

import re

UNKNOWN_MODEL = "unknown"
_KEYS = {
    "llvm": ("cpu",), "c": ("cpu",), "stackvm": ("cpu",), "hexagon": ("hexagon",), "cuda": ("cuda", "gpu"), "nvptx": ("cuda", "gpu"),
    "rocm": ("rocm", "gpu"), "opencl": ("opencl", "gpu"), "metal": ("metal", "gpu"), "vulkan": ("vulkan", "gpu"), "webgpu": ("webgpu", "gpu"),
}  # fmt: skip
"""The default keys of a kind of target."""


def modern(target: str) -> str:
    """Rename the option `-target` of old logs to its later name, `-mtriple`."""
    return re.sub(r"(?<!\S)-target(?=[=\s])", "-mtriple", target)


def model(target: str) -> str:
    """The device's model; "unknown" if the text does not have one."""
    return _option(target, "model") or UNKNOWN_MODEL


def names(target: str) -> list[tuple[str, str]]:
    """The lookup names of a target in a log, most specific first: its model, if it has one, and its keys."""
    own = model(target)
    return [*([("model", own)] if own != UNKNOWN_MODEL else []), *(("key", key) for key in keys(target))]


def keys(target: str) -> tuple[str, ...]:
    """The lookup keys in a log, most specific first: the device, then the given keys, or else those of the kind."""
    kind = target.split(maxsplit=1)[0] if target.split() else ""
    device, given = _option(target, "device"), _option(target, "keys")
    named = tuple(filter(None, given.split(","))) if given else _KEYS.get(kind, (kind,))
    return tuple(dict.fromkeys((device, *named) if device else named))


def _option(target: str, name: str) -> str:
    found = re.search(rf"(?<!\S)-{name}(?:=|\s+)(\S+)", target)
    return found[1] if found else ""
