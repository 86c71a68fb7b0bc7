"""A built kernel, called with NumPy arrays or torch tensors; results have the same type."""

import ctypes
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.building import Toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.pool_library import bring_pool, pool_bytes, shared_pool
from ansor.codegen.source import ALIGNMENT, Argument, CSource, signature
from ansor.codegen.toolchain import find_compiler
from ansor.errors import ArgumentError, ArgumentTypeError, MeasureError, ToolchainError
from ansor.measure import saved_kernel
from ansor.measure.builder import Builder, Built
from ansor.measure.kept_kernels import keep_kernel, known_kernel
from ansor.measure.kernel_html import kernel_html
from ansor.measure.machine_trouble import check_trouble
from ansor.measure.quick_call import Entry, QuickCall, quick_call
from ansor.measure.result_memory import aligned_empty
from ansor.measure.saved_kernel import Facts, SavedKernel
from ansor.support.bfloat16 import array_of, tensor_of
from ansor.support.forked import Locked
from ansor.support.loaded import loaded_torch
from ansor.support.notices import warn
from ansor.support.text import counted, format_seconds, with_article
from ansor.targets.unit import SECONDS, Unit

if TYPE_CHECKING:
    import torch

    Tensor = NDArray[np.generic] | torch.Tensor


def build_kernels(sources: Sequence[CSource], toolchain: Toolchain | None = None) -> list["Kernel"]:
    """Kernels of several sources, built in parallel, by default for this machine. Raises ToolchainError with the compiler's text, MachineTrouble if the
    machine is the cause."""
    chosen = toolchain or CToolchain(find_compiler())
    known = [_known(source, chosen) for source in sources]
    apart = replace(chosen, apart=True) if isinstance(chosen, CToolchain) else None
    with Builder(apart or chosen, timeout=120.0, together=None if apart else 1) as builder:
        fresh = iter(builder.build([source for source, kernel in zip(sources, known, strict=True) if kernel is None]))
        return [_built(next(fresh), chosen) if kernel is None else kernel for kernel in known]


def _known(source: CSource, toolchain: Toolchain) -> "Kernel | None":
    """The kernel of a cached library; None if there is none, if it does not load, or if another process just removed it."""
    library = known_kernel(source, toolchain)
    with suppress(OSError, MeasureError):
        return None if library is None else Kernel(source, library)
    return None


def _built(built: Built, toolchain: Toolchain) -> "Kernel":
    check_trouble(built.failure)
    if built.artifact is None:
        raise ToolchainError(f"kernel {built.source.entry!r} does not build with {toolchain.version}: {built.failure}")
    keep_kernel(built.source, toolchain, built.artifact.path)
    return Kernel(built.source, built.artifact.path, symbol=built.artifact.symbol)


class Kernel(Locked):
    """A callable kernel. It keeps the library's bytes, so the file may be deleted.

    Call it with the inputs, and those constants that `bind_constants` did not bind, in declaration order. Results are new
    arrays, or `out=` (one array, or a tuple for several outputs; it may be one of the inputs). Arrays that are not contiguous or not aligned to
    `ALIGNMENT` bytes are copied first; torch tensors and `aligned_empty` arrays need no copy. Calls from several Python
    threads are safe but serialised. Inputs may be given by name.
    From the third call on, a call takes about a microsecond more than its C code: the first two check their arguments in a slower way, as does any call that
    is not simple. The memory of a result is reused once the result is gone: a kernel keeps one block of it for each output. Results cannot be resized in place.
    """

    def __init__(
        self,
        source: CSource,
        library: Path,
        *,
        symbol: str = "",
        latency_s: float | None = None,
        schedule: str = "",
    ) -> None:
        super().__init__()
        self._source = source
        self.latency_s = latency_s
        self.schedule = schedule
        self.name = source.entry  # for display; the task's, if there is one
        self.cost: float | None = latency_s  # in `unit`; None if nothing was measured
        self.unit: Unit = SECONDS
        self.stats: dict[str, float] = {}  # counters of all trials by name
        self.origin = ""  # "the rules", "template 'matmul'"; "" for the plain declaration, and without a search
        self.mcpu = "native"  # the processor that it was made for
        self.ranges: tuple[tuple[str, float, float], ...] = ()  # (low, high) of inputs that decide indices or divisors
        self._symbol = symbol or source.entry
        self._content = library.read_bytes()
        try:
            self._library = ctypes.CDLL(str(library))
            self._function = getattr(self._library, self._symbol)
        except (OSError, AttributeError) as error:
            raise MeasureError(f"kernel {source.entry!r} cannot be loaded from {library.name}: {error}") from error
        self._function.restype, self._function.argtypes = None, [ctypes.c_void_p] * 4
        if source.threads > 1:
            shared_pool(source.threads)  # built and started now, not at the first call
        self._workspace: NDArray[np.generic] | None = None  # made when first needed: networks bring their own
        self._workspace_address = 0
        self._bound: dict[str, NDArray[np.generic]] = {}
        self._constants: dict[str, NDArray[np.generic]] = {}
        self._dtypes = {argument.name: np.dtype(argument.dtype) for argument in source.arguments}
        self._outputs = [argument for argument in source.arguments if argument.role == "output"]
        self._quick: QuickCall | None = None
        self._met: Counter[bool] = Counter()  # calls by whether they had tensors, until they are quick
        self._gradients_said = False

    def __repr__(self) -> str:
        measured = f", measured {format_seconds(self.latency_s)}" if self.latency_s is not None else ""
        return f"Kernel({self.name}: {signature(self.arguments)}; {counted(self._source.threads, 'thread')}{measured})"

    def _repr_html_(self) -> str:
        return kernel_html(repr(self), self.arguments, self.schedule, self.source)

    @property
    def source(self) -> str:
        """The C text."""
        return self._source.text

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Inputs, constants and outputs in declaration order."""
        return self._source.arguments

    @property
    def code(self) -> CSource:
        """The text, with everything needed to call it."""
        return self._source

    @property
    def address(self) -> int:
        """The entry point's address in this process, valid while the kernel lives."""
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def bind_constants(self, constants: "Mapping[str, Tensor]") -> None:
        """Keep constants (logical arrays by name), packed as the kernel needs them; calls then omit them.

        Raises MeasureError for a name that is not a constant, and ArgumentError or ArgumentTypeError for a wrong shape or dtype.
        """
        if not isinstance(constants, Mapping):
            raise ArgumentTypeError(f"asked to bind {with_article(type(constants).__name__)}; give constants by name, such as {{'weight': array}}")
        known = {argument.name: argument for argument in self.arguments if argument.role == "constant"}
        for name, value in constants.items():
            if name not in known:
                raise MeasureError(f"asked to bind a constant of {self.name}, which has no constant {name!r}; it has {', '.join(known) or 'none'}")
            array = self._checked(known[name], value)
            packed = _aligned(known[name].physical(array))
            with self.lock:
                self._constants[name], self._bound[name] = array, packed
                self._slow_again()

    def __call__(self, /, *inputs: "Tensor", out: "Tensor | Sequence[Tensor] | None" = None, **named: "Tensor") -> "Tensor | tuple[Tensor, ...]":
        """Run once; named arguments follow positional ones.

        Raises ArgumentTypeError or ArgumentError, which are also a TypeError and a ValueError, if the number, a name, a shape or a dtype is wrong.
        """
        quick = self._quick
        if quick is not None and not named:
            with self.lock:
                found: Tensor | tuple[Tensor, ...] | None = quick(inputs, out)
            if found is not None:
                return found
        return self._call_checked(inputs, out, named)

    def _call_checked(
        self, inputs: "tuple[Tensor, ...]", out: "Tensor | Sequence[Tensor] | None", named: "Mapping[str, Tensor]"
    ) -> "Tensor | tuple[Tensor, ...]":
        """A call whose arguments may need checks, conversions or copies. Separate from `__call__`, because its closures would slow down the fast path there."""
        wanted = [a for a in self.arguments if a.role != "output" and a.name not in self._bound]
        if named:
            inputs = self._in_order(wanted, inputs, named)
        self._check_count(wanted, inputs)
        self._watch_gradients(inputs)
        buffers = dict(self._bound)
        for argument, value in zip(wanted, inputs, strict=True):
            array = self._checked(argument, value)
            buffers[argument.name] = _aligned(array if argument.as_given else argument.physical(array))
        results = self._results(out)
        for argument, result in zip(self._outputs, results, strict=True):
            usable = result.flags.c_contiguous and result.ctypes.data % ALIGNMENT == 0
            if usable and out is not None:  # C assumes that buffers do not overlap
                usable = not any(np.may_share_memory(result, other) for other in buffers.values())
            buffers[argument.name] = result if usable else aligned_empty(argument.shape, argument.dtype)
        self._run(buffers)
        for argument, result in zip(self._outputs, results, strict=True):
            if buffers[argument.name] is not result:
                result[...] = buffers[argument.name]
        self._learn(inputs)
        if out is not None:
            return tuple(out) if _is_several(out) else cast("Tensor", out)
        found = tuple(_like(result, inputs) for result in results)
        return found[0] if len(found) == 1 else found

    def _check_count(self, wanted: Sequence[Argument], inputs: "Sequence[Tensor]") -> None:
        if len(inputs) != len(wanted):
            names = ", ".join(argument.name for argument in wanted)
            raise ArgumentTypeError(f"{self.name} takes {counted(len(wanted), 'argument')} ({names}), but {_were(len(inputs))} given")

    def _in_order(self, wanted: Sequence[Argument], inputs: "Sequence[Tensor]", named: "Mapping[str, Tensor]") -> "tuple[Tensor, ...]":
        """All arguments by position."""
        names = [argument.name for argument in wanted]
        for name in named:
            if name not in names:
                bound = " (bound already)" if name in self._bound else ""
                raise ArgumentTypeError(f"{self.name} was called with an argument {name!r}{bound}; it takes {', '.join(names)}, and out=")
            if name in names[: len(inputs)]:
                raise ArgumentTypeError(f"{self.name} was called with {name!r} twice: by position and by name")
        missing = [name for name in names[len(inputs) :] if name not in named]
        if missing:
            raise ArgumentTypeError(f"{self.name} was called without {', '.join(missing)}; it takes {', '.join(names)}")
        return (*inputs, *(named[name] for name in names[len(inputs) :]))

    def _watch_gradients(self, inputs: "Sequence[Tensor]") -> None:
        """Warn once where PyTorch would have tracked gradients. Quick calls are not checked, to save time."""
        torch = loaded_torch()
        if torch is None or self._gradients_said or not torch.is_grad_enabled():
            return
        names = [a.name for a in self.arguments if a.role != "output" and a.name not in self._bound]
        for name, value in zip(names, inputs, strict=False):
            if isinstance(value, torch.Tensor) and value.requires_grad:
                self._gradients_said = True
                warn(f"{self.name}: argument {name!r} requires gradients, but a kernel computes none: its results do not require them; "
                     "call it under torch.no_grad()")  # fmt: skip
                return

    def _learn(self, inputs: "Sequence[Tensor]") -> None:
        """Make calls quick after the second one with arrays, or with tensors: a kernel called once does not need it."""
        tensors = any(_is_tensor(value) for value in inputs)
        with self.lock:
            self._met[tensors] += 1
            if self._met[tensors] != 2 or (self._quick is not None and not tensors):
                return
            pool = shared_pool(self._source.threads) if self._source.threads > 1 else None
            function, workspace = ctypes.cast(self._function, ctypes.c_void_p).value or 0, self._own_workspace()
            entry = Entry(function, workspace, pool.parallel_for if pool else 0, pool.handle if pool else 0, self._workspace)
            self._quick = quick_call(entry, self.arguments, self._bound, tensors)

    def after_fork(self) -> None:
        """Drop quick calls: a forked child lacks their threads."""
        self._slow_again()

    def _slow_again(self) -> None:
        self._quick, self._met = None, Counter()  # reads nothing: a fork by another thread may find a half-made kernel

    def run_pointers(self, addresses: Sequence[int], workspace: int = 0) -> None:
        """Run once on raw addresses, one per argument (aligned, constants packed): for planned memory.

        Nothing is checked. `workspace` 0 means the kernel's own.
        """
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        with self.lock:
            self._call(ctypes.addressof(pointers), workspace or self._own_workspace())

    def prepared(self, addresses: Sequence[int], workspace: int, keep: Sequence[object] = ()) -> Callable[[], None]:
        """A function that runs the kernel on these addresses (as for `run_pointers`) on each call; it keeps `keep` alive."""
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        place = ctypes.addressof(pointers)
        held = (pointers, tuple(keep))

        def run(_held: object = held) -> None:
            self._call(place, workspace)

        return run

    def bound_constant(self, name: str) -> NDArray[np.generic]:
        """The packed buffer of a bound constant; raises KeyError if it is not bound."""
        return self._bound[name]

    def save(self, folder: str | Path) -> Path:
        """Write kernel.c, kernel.so, kernel.json and the bound constants to a folder, for `Kernel.load`.

        Existing files are replaced atomically: processes that have them open or loaded keep the old contents.
        """
        place = Path(folder)
        saved_kernel.write(self.files(), place)
        return place

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load what `save` wrote; this runs code. Raises MeasureError if it is missing, damaged, of another version, or not for this machine."""
        place = Path(folder)
        return cls.of_files(saved_kernel.read(place), str(place))

    def export(self, folder: str | Path, example_inputs: "Tensor | Sequence[Tensor] | Mapping[str, Tensor] | None" = None, *, name: str = "") -> Path:
        """Write the kernel as C that needs no Python: a header, the constants, a self-test with recorded values, CMakeLists.txt and a README.

        example_inputs: for the self-test, in order or by name; made up if None. name: of the C function and its files; by default that of the declaration.
        Existing files are replaced. Raises MeasureError if a constant is not bound or the folder cannot be written to, and the errors of a call.
        """
        from ansor.measure.exported_kernel import ExportedKernel, made_values
        from ansor.measure.exported_names import kernel_name

        unbound = [one.name for one in self.arguments if one.role == "constant" and one.name not in self._bound]
        if unbound:
            cure = "call bind_constants first; values that change between calls should be inputs, not constants"
            raise MeasureError(f"asked to export {self.name}, whose C holds its constants, but no values of {', '.join(unbound)} are bound; {cure}")
        chosen = kernel_name(name, self._source.entry)
        wanted = [one for one in self.arguments if one.role == "input"]
        if example_inputs is None:
            values = made_values(wanted, self.ranges, self._outputs_for)
        else:
            inputs = self._examples(wanted, example_inputs)
            values = {**inputs, **self._outputs_for(inputs)}
        march = self.mcpu.replace("_", "-") or "native"
        ExportedKernel(chosen, self.name, self._source, march, self._bound, values).write(Path(folder))
        return Path(folder)

    def _examples(self, wanted: Sequence[Argument], given: "Tensor | Sequence[Tensor] | Mapping[str, Tensor]") -> dict[str, NDArray[np.generic]]:
        """Example inputs by name."""
        ordered = self._in_order(wanted, (), given) if isinstance(given, Mapping) else tuple(given) if _is_several(given) else (cast("Tensor", given),)
        self._check_count(wanted, ordered)
        return {one.name: np.ascontiguousarray(self._checked(one, value)) for one, value in zip(wanted, ordered, strict=True)}

    def _outputs_for(self, inputs: "Mapping[str, NDArray[np.generic]]") -> dict[str, NDArray[np.generic]]:
        """The outputs by name, all constants being bound."""
        results = [aligned_empty(one.shape, one.dtype) for one in self._outputs]
        self(*(inputs[one.name] for one in self.arguments if one.role == "input"), out=results)
        return {one.name: result for one, result in zip(self._outputs, results, strict=True)}

    def files(self) -> saved_kernel.Files:
        """The files that `save` writes, contents by name."""
        return self._saved().files(pool_bytes(self._source.threads))

    @classmethod
    def of_files(cls, files: saved_kernel.Files, where: str) -> Self:
        """The kernel of `files`; `where`: their origin, for messages. Raises MeasureError as `load` does."""
        saved = saved_kernel.opened(files, where)
        try:
            bring_pool(saved_kernel.pool_of(files))
            with tempfile.TemporaryDirectory(prefix="ansor-kernel-") as private:  # a path that dlopen has never seen and no other process writes to
                library = Path(private) / "kernel.so"
                library.write_bytes(saved.library)
                facts = saved.facts
                kernel = cls(saved.source, library, symbol=saved.symbol, latency_s=facts.latency_s, schedule=facts.schedule)
            kernel.origin, kernel.name, kernel.mcpu, kernel.ranges = facts.origin, facts.name or kernel.name, facts.mcpu, facts.ranges
            kernel.bind_constants(saved.constants)
        except (OSError, ValueError, TypeError) as error:
            raise MeasureError(f"{where}: the saved kernel cannot be loaded: {error}; save it again") from error
        return kernel

    def _saved(self) -> SavedKernel:
        facts = Facts(self.latency_s, self.schedule, self.origin, self.name, self.mcpu, self.ranges)
        return SavedKernel(self._source, self._symbol, self._content, self._constants, facts)

    def __reduce__(self) -> "tuple[Callable[[saved_kernel.Files], Kernel], tuple[saved_kernel.Files]]":
        """Copies and pickles via the saved files: the copy has its own library, memory and lock."""
        return _restored, (self.files(),)

    def _run(self, buffers: Mapping[str, NDArray[np.generic]]) -> None:
        addresses = [buffers[argument.name].ctypes.data for argument in self.arguments]
        self.run_pointers(addresses)

    def _own_workspace(self) -> int:
        if self._workspace is None:
            self._workspace = aligned_empty((max(1, self._source.workspace_bytes),), "uint8")
            self._workspace_address = self._workspace.ctypes.data
        return self._workspace_address

    def _call(self, pointers: int, workspace: int) -> None:
        if self._source.threads == 1:
            self._function(pointers, workspace, None, None)
            return
        pool = shared_pool(self._source.threads)  # looked up each time: a forked process has its own
        self._function(pointers, workspace, pool.parallel_for, pool.handle)

    def _results(self, out: "Tensor | Sequence[Tensor] | None") -> list[NDArray[np.generic]]:
        if out is None:
            return [aligned_empty(argument.shape, argument.dtype) for argument in self._outputs]
        given = list(out) if _is_several(out) else [cast("Tensor", out)]
        if len(given) != len(self._outputs):
            raise ArgumentTypeError(f"{self.name} has {len(self._outputs)} outputs, but out= holds {len(given)}")
        results = [self._checked(argument, value) for argument, value in zip(self._outputs, given, strict=True)]
        for argument, result in zip(self._outputs, results, strict=True):
            if not result.flags.writeable:
                raise ArgumentError(f"{self.name}: out= for {argument.name!r} is read-only; pass a writable array, or leave it out")
            if any(stride == 0 and extent > 1 for stride, extent in zip(result.strides, result.shape, strict=True)):
                raise ArgumentError(f"{self.name}: out= for {argument.name!r} is expanded: several elements share memory; pass another array")
        return results

    def _checked(self, argument: Argument, value: "Tensor") -> NDArray[np.generic]:
        """The value as an array of the declared shape and dtype; never a copy of an array."""
        array = _as_array(argument, value)
        if array.shape != argument.shape:
            raise ArgumentError(
                f"{self.name}: {argument.role} {argument.name!r} must have shape {argument.shape}, found {array.shape}"
            )
        if array.dtype != self._dtypes[argument.name]:
            raise ArgumentTypeError(
                f"{self.name}: {argument.role} {argument.name!r} must have dtype {argument.dtype}, "
                f"found {_found(value, array)}; convert it with {_conversion(value, argument.dtype)}"
            )
        return array


def _is_several(out: "Tensor | Sequence[Tensor]") -> "TypeGuard[Sequence[Tensor]]":
    return isinstance(out, Sequence) and not isinstance(out, memoryview)


def _were(number: int) -> str:
    return f"{number} {'was' if number == 1 else 'were'}"


def _found(value: object, array: NDArray[np.generic]) -> str:
    """The dtype, or how NumPy reads a value without one."""
    own = isinstance(value, np.ndarray | np.generic) or _is_tensor(value)
    return str(array.dtype) if own else f"a {type(value).__name__}, which NumPy reads as {array.dtype}"


def _conversion(value: object, dtype: str) -> str:
    if _is_tensor(value):
        return f".to(torch.{dtype})"
    return f".astype({dtype!r})" if isinstance(value, np.ndarray | np.generic) else f"numpy.asarray(..., {dtype!r})"


def _restored(files: saved_kernel.Files) -> Kernel:
    return Kernel.of_files(files, "a pickled kernel")


def _is_tensor(value: object) -> bool:
    # Whoever passes a torch tensor has imported torch; we do not import it.
    torch = loaded_torch()
    return torch is not None and isinstance(value, torch.Tensor)


def _as_array(argument: Argument, value: "Tensor") -> NDArray[np.generic]:
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise ArgumentTypeError(f"{argument.role} {argument.name!r} is a masked array, whose mask would be ignored; pass .filled(value) or .data")
        return np.asarray(value)  # without the behaviour of a subclass
    if not _is_tensor(value):
        try:
            found = np.asarray(value)
        except (ValueError, TypeError):  # lists of different lengths, an invalid __array_interface__
            found = np.asarray(None)
        if found.dtype == object:
            raise ArgumentTypeError(f"{argument.role} {argument.name!r} must be an array or a tensor, found {type(value).__name__}")
        return found
    if value.device.type != "cpu":
        raise ArgumentTypeError(f"{argument.role} {argument.name!r} is on {value.device}; this kernel is for the cpu: use .cpu()")
    try:
        plain = value.detach().resolve_conj().resolve_neg()
        if argument.role == "output" and value.is_neg():
            raise ArgumentTypeError(f"out= for {argument.name!r} is a negated view, which cannot be written to; pass another array")
        array: NDArray[np.generic] = array_of(plain)
    except (TypeError, RuntimeError, NotImplementedError) as error:  # a dtype that NumPy lacks, sparse storage, a stand-in for a tensor
        if isinstance(error, ArgumentTypeError):
            raise
        kind = f"{value.dtype}, {value.layout}".replace("torch.", "")
        sentence = f"{argument.role} {argument.name!r} is a tensor of {kind}, which NumPy cannot hold; pass an ordinary, dense tensor of {argument.dtype}"
        raise ArgumentTypeError(sentence) from error
    return array


def _aligned(array: NDArray[np.generic]) -> NDArray[np.generic]:
    if array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0:
        return array
    copy = aligned_empty(array.shape, array.dtype.name)
    copy[...] = array
    return copy


def _like(result: NDArray[np.generic], inputs: "Sequence[Tensor]") -> "Tensor":
    if any(_is_tensor(value) for value in inputs):
        return tensor_of(result)
    return result
