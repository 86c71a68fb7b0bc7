"""The exceptions of the package. Every message says what was asked, of what, what was found, and what to do."""


class AnsorError(RuntimeError):
    """Base of every error this package raises on purpose; catch it to catch them all. A RuntimeError, like TVM's own errors."""


class AnsorWarning(RuntimeWarning):
    """Something was not done as asked, but the result is valid. `ansor.support.notices.warn` issues it, once for each cause."""


class DeclarationError(AnsorError, ValueError):
    """A tensor declaration is invalid (shape, dtype, axis, out-of-bounds read). Cure: fix the declaration."""


class ScheduleError(AnsorError, ValueError):
    """A schedule step cannot be applied to the stage or loop it names. Cure: choose another loop or step."""


class TargetError(AnsorError, ValueError):
    """A target string or option is unknown or out of range. Cure: use one of the names the message lists."""


class ArgumentError(AnsorError, ValueError):
    """An argument has the wrong type or is out of range. Cure: as the message says."""


class ArgumentTypeError(ArgumentError, TypeError):
    """The arrays do not match those that a kernel takes (dtype, device, layout, count), or a keyword is unknown. Cure: as the message says."""


class BudgetError(AnsorError, ValueError):
    """A budget of trials or minutes is missing or not a number above 0. Cure: as the message says."""


class ToolchainError(AnsorError):
    """No C compiler could be started, or it cannot build for the target. Cure: `ansor doctor`, `--cc`, `$CC`."""


class CacheError(AnsorError):
    """The cache folder cannot be created, read or written, or others could have written to it. Cure: as the message says, or another `$ANSOR_CACHE`."""


class MeasureError(AnsorError):
    """Measuring itself failed, not a candidate. Failures of candidates are values, not exceptions."""


class MachineTrouble(MeasureError):
    """The machine ran out of a resource, or one of our tools does not work; earlier measurements are valid. Cure: as the message says."""


class DeviceError(MeasureError):
    """A device is unknown, cannot be opened, or does not run what was built. Cure: `ansor devices`, or as the message says."""


class UnitError(AnsorError, ValueError):
    """Costs in two units, or from two kinds of devices, are mixed. Cure: measure on one kind of device."""


class RecordError(AnsorError, ValueError):
    """A record file cannot be used, for example because its workload, target or version does not match. Cure: as the message says."""


class ModelError(AnsorError, ValueError):
    """A PyTorch model cannot be exported or compiled. Cure: as the message says."""


class MissingPackageError(AnsorError, ImportError):
    """A Python package that is needed for what was asked is not installed. Cure: install it, as the message says."""


class OutOfRangeError(AnsorError, IndexError):
    """A network was called with an index outside the table that it looks up. Cure: fix the input."""


class CostModelError(AnsorError):
    """A cost model cannot be trained or loaded. Cure: as the message says."""


class ConfigError(AnsorError):
    """A knob cannot be defined, or a configuration has no such knob or value. Cure: as the message says."""


class InstantiationError(AnsorError, ValueError):
    """A template rejected its configuration (`cfg.raise_error`), which is not compiled. Cure: another configuration."""
