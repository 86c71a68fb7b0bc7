"""Target texts of TVM, as far as logs are looked up by them: `llvm -mcpu=skylake -model=unknown`."""

import re

UNKNOWN_MODEL = "unknown"
_KEYS = {
    "llvm": ("cpu",), "c": ("cpu",), "stackvm": ("cpu",), "hexagon": ("hexagon",), "cuda": ("cuda", "gpu"), "nvptx": ("cuda", "gpu"),
    "rocm": ("rocm", "gpu"), "opencl": ("opencl", "gpu"), "metal": ("metal", "gpu"), "vulkan": ("vulkan", "gpu"), "webgpu": ("webgpu", "gpu"),
}  # fmt: skip
"""The keys of a kind of target that names none."""


def modern(target: str) -> str:
    """The option that old logs call `-target` under its later name, `-mtriple`."""
    return re.sub(r"(?<!\S)-target(?=[=\s])", "-mtriple", target)


def model(target: str) -> str:
    """The device's model, "unknown" when the text does not tell."""
    return _option(target, "model") or UNKNOWN_MODEL


def keys(target: str) -> tuple[str, ...]:
    """What a log is looked up by, most special first: the device, then the keys given, or else those of the kind."""
    kind = target.split(maxsplit=1)[0] if target.split() else ""
    device, given = _option(target, "device"), _option(target, "keys")
    named = tuple(filter(None, given.split(","))) if given else _KEYS.get(kind, (kind,))
    return tuple(dict.fromkeys((device, *named) if device else named))


def _option(target: str, name: str) -> str:
    found = re.search(rf"(?<!\S)-{name}(?:=|\s+)(\S+)", target)
    return found[1] if found else ""
