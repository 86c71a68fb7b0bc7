"""Targets: the machines we generate code for, as data.

A target is text with options, read once into a frozen value: `parse_target("cpu -mcpu=znver3 -threads=1")`. A kind of target (`cpu`) defines the
options and their defaults; `register_kind` adds kinds, and other packages provide theirs through the entry point group
`ansor.targets` (a name and a `Kind`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from operator import attrgetter
from typing import Any, Literal, TypeVar

from ansor.codegen.building import Toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.dialect import Dialect
from ansor.codegen.generate import PASSES, Machine, draft_of, generate
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import find_compiler
from ansor.errors import TargetError
from ansor.ir.columns import Row
from ansor.ir.dag import Dag
from ansor.ir.intrinsics import Intrinsic, available, declare, declare_later, intrinsic_named
from ansor.ir.loops import Loops
from ansor.ir.passes import PassText, shown
from ansor.schedule.legality import LIMITS
from ansor.schedule.machine import Limit
from ansor.support.text import parse_bytes, with_article
from ansor.targets.hardware import Caches, Hardware
from ansor.targets.other_names import kind_hint, option_hint
from ansor.targets.own_cost import checked_cost
from ansor.targets.prior import Prior
from ansor.targets.unit import SECONDS, Unit

GROUP = "ansor.targets"
BUILTIN = {"arm": "ansor.targets.arm", "armv7": "ansor.targets.arm", "cpu": "ansor.targets.cpu", "micro": "ansor.targets.micro", "vta": "ansor.targets.vta"}
"""The package's own kinds, and the modules that register them. They are imported on request: compiling for this machine needs only cpu."""

LOCAL = "local"
"""The device for this machine."""

DEVICES = ("cuda", "opencl", "vulkan", "metal", "rocm", "hip", "webgpu", "hexagon", "gpu", "mps", "nvptx", "sycl")
"""Kinds that other systems have, and that users ask for."""


@dataclass(frozen=True, repr=False)
class Target:
    """One machine to generate code for.

    kind: name of the kind it belongs to; mcpu: processor as the C compiler names it (`native` = this one).
    hardware: its threads, vectors, caches and memories.
    compiler: command of the C compiler, '' = the embedded one.
    rules: the names of the sketch rules, in the order in which they are tried, each with the knobs
        that differ from the defaults: `pack_operands(reuse=4)`.
    dialect: how C for it is written.
    prior: constants for the estimate of its programs' times.
    """

    kind: str
    mcpu: str
    hardware: Hardware
    compiler: str = ""
    rules: tuple[str, ...] = ()
    dialect: Dialect = Dialect()
    prior: Prior = Prior()

    def __str__(self) -> str:
        """Canonical text: the kind, the processor, the threads, and all options that differ from the processor's defaults."""
        kind = find_kind(self.kind)
        default = kind.default(self.mcpu)
        shown = [option for option in kind.options if option.always or option.of(self) != option.of(default)]
        texts = ((option.name, option.text(option.of(self), option.of(default))) for option in shown)
        return " ".join([self.kind, *(shlex.quote(f"-{name}={text}") for name, text in texts)])

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    @property
    def threads(self) -> int:
        """How many threads run a kernel."""
        return self.hardware.threads

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector register."""
        return self.hardware.vector_bytes

    @property
    def vector_registers(self) -> int:
        """Vector registers of one core."""
        return self.hardware.vector_registers

    @property
    def vector_group(self) -> int:
        """Registers per vector of `vector_bytes`."""
        return self.hardware.vector_group

    @property
    def caches(self) -> Caches:
        """The caches of its cores."""
        return self.hardware.caches

    @property
    def capacities(self) -> Mapping[str, int]:
        """The capacity of each memory in bytes, by scope; missing ones are unlimited."""
        return self.hardware.memory.capacities

    @property
    def unit(self) -> Unit:
        """The unit of costs on devices of its kind."""
        unit = find_kind(self.kind).unit
        return unit(self) if callable(unit) else unit

    @property
    def intrinsics(self) -> tuple[Intrinsic, ...]:
        """Those of its kind's intrinsics that it has, in order of preference."""
        return available(find_kind(self.kind).codegen.intrinsics, self.hardware.features, self.vector_bytes)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of algorithms for its programs, besides those of every target."""
        algorithms = find_kind(self.kind).codegen.algorithms.names
        return algorithms(self) if callable(algorithms) else algorithms

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits that a program for it may not exceed."""
        limits = find_kind(self.kind).codegen.limits
        return limits(self) if callable(limits) else limits

    @property
    def open_loops(self) -> bool:
        """Whether loop orders, locations and annotations are open after the rules."""
        return find_kind(self.kind).codegen.loops.open

    @property
    def plain_loops(self) -> bool:
        """Whether its devices can run the plain loops of a declaration."""
        return find_kind(self.kind).codegen.loops.plain

    @property
    def estimates(self) -> bool:
        """Whether its kind has its own estimate."""
        return find_kind(self.kind).codegen.cost is not None

    def cost(self, loops: Loops) -> Row | None:
        """The estimated cost of each program by the estimate of its kind; None: use the estimate for processors, based on `prior`."""
        estimate = find_kind(self.kind).codegen.cost
        return None if estimate is None else checked_cost(self.kind, lambda: estimate(self, loops))

    def refusal(self, dag: Dag) -> str:
        """Why its devices cannot run any program of a computation; '' if they can."""
        return find_kind(self.kind).codegen.refusal(self, dag)

    @property
    def device(self) -> str:
        """The default device for measuring its programs."""
        device = find_kind(self.kind).device
        return device(self) if callable(device) else device

    @property
    def is_local(self) -> bool:
        """Whether its programs run in processes of this machine."""
        return self.device == LOCAL

    @property
    def alignment(self) -> int:
        """The alignment of buffers in bytes."""
        return self.dialect.alignment

    def emit(self, loops: Loops, entry: str) -> CSource:
        """The text of a program with that entry point, and how to call it."""
        return find_kind(self.kind).codegen.emit(self, loops, entry)

    def called(self, source: CSource) -> CSource:
        """A program of another declaration, adapted to the workload's arguments."""
        called = find_kind(self.kind).codegen.algorithms.called
        return source if called is None else called(source)

    def passes(self, loops: Loops, entry: str) -> Iterator[PassText]:
        """The program after each pass that generates its text."""
        emit = find_kind(self.kind).codegen.emit
        if emit is _as_c:
            return shown(PASSES, draft_of(loops, self.machine, entry))
        return iter([PassText("text", f"as the kind {self.kind} writes it", emit(self, loops, entry).text)])

    @property
    def machine(self) -> Machine:
        """The parameters that generated C depends on."""
        return Machine(self.vector_bytes, self.threads, self.dialect, self.hardware.memory.workspace_bytes)

    def toolchain(self) -> Toolchain:
        """The toolchain that builds its programs. Raises ToolchainError if it cannot be started."""
        return find_kind(self.kind).codegen.toolchain(self)

    def lanes(self, dtype_bytes: int) -> int:
        """Elements of that size in one vector register, at least 1."""
        return max(1, self.vector_bytes // dtype_bytes)


Reading = Literal["text", "count", "size", "features"]
Value = str | int | frozenset[str]
Whole = TypeVar("Whole")


@dataclass(frozen=True)
class Bounds:
    """The valid numbers of an option: from `least` to `most`; with `power`, only powers of two."""

    least: int = 1
    most: int = 1 << 40
    power: bool = False

    def __contains__(self, value: int) -> bool:
        return self.least <= value <= self.most and not (self.power and value & (value - 1))


@dataclass(frozen=True)
class Option:
    """`-name=value` sets `field` of the target: `mcpu`, or a path such as `hardware.caches.l1_bytes`.

    A count is an integer, and a size takes K, M and G, within `bounds`; features are `+one,-other` of those `known`,
    relative to the processor's. `always`: part of every canonical text. `starts_program`: its value names a program to start, so that texts from
    files may not have it (`program_options`).
    """

    name: str
    field: str
    reading: Reading
    help: str
    bounds: Bounds = Bounds()
    always: bool = False
    starts_program: bool = False
    known: tuple[str, ...] = ()

    def of(self, target: Target) -> Value:
        """The value of a target's field."""
        value: Value = attrgetter(self.field)(target)
        return value

    def put(self, target: Target, value: Value) -> Target:
        """The target with that value in the field."""
        return _put(target, self.field, value)

    def parse(self, kind: str, text: str, default: Value = "") -> Value:
        """The value of `text`. Raises TargetError. `default`: the processor's value."""
        if isinstance(default, frozenset):
            return self._changed(kind, text, default)
        if self.reading == "text":
            return text
        value = parse_bytes(text) if self.reading == "size" else int(text) if re.fullmatch(r"\d+", text) else None
        if value is None or value not in self.bounds:
            least, most = self.bounds.least, self.bounds.most
            number = "a power of two" if self.bounds.power else "bytes such as 32K or 1M" if self.reading == "size" else "an integer"
            form = f"is {number}, at least {least}" + (f" and at most {self.text(most)}" if value is not None and value > most else "")
            form = f"has to be {self.text(least)}" if least == most else form
            raise TargetError(f"asked for target {kind} with -{self.name}={text}; -{self.name} ({self.help}) {form}")
        return value

    def _changed(self, kind: str, text: str, features: frozenset[str]) -> frozenset[str]:
        for word in text.split(","):
            if word[:1] not in ("+", "-") or word[1:] not in self.known:
                listed = ", ".join(self.known)
                raise TargetError(f"asked for target {kind} with -{self.name}={text}; -{self.name} ({self.help}) is +NAME or -NAME, with commas, of {listed}")
            features = features | {word[1:]} if word[0] == "+" else features - {word[1:]}
        return features

    def text(self, value: Value, default: Value = "") -> str:
        """The text that `parse` reads back."""
        if isinstance(value, frozenset) and isinstance(default, frozenset):
            return ",".join([*(f"+{name}" for name in sorted(value - default)), *(f"-{name}" for name in sorted(default - value))])
        if self.reading != "size" or not isinstance(value, int):
            return str(value)
        for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
            if value and value % (1 << shift) == 0:
                return f"{value >> shift}{unit}"
        return str(value)


def _put(whole: Whole, field: str, value: object) -> Whole:
    first, _, rest = field.partition(".")
    return replace(whole, **{first: _put(getattr(whole, first), rest, value) if rest else value})  # type: ignore[type-var]  # of dataclasses


MCPU = Option("mcpu", "mcpu", "text", "processor, as the C compiler names it", always=True)


def _any(target: Target, dag: Dag) -> str:
    return ""


def _as_it_is(target: Target) -> Target:
    return target


def _as_c(target: Target, loops: Loops, entry: str) -> CSource:
    return generate(loops, target.machine, entry)


def _c_compiler(target: Target) -> Toolchain:
    return CToolchain(find_compiler(target.compiler), target.mcpu)


@dataclass(frozen=True)
class OwnAlgorithms:
    """A kind's own algorithms, besides those of every target (`ansor.algorithms.base`). names: of the algorithms, or a function of the
    target. called: adapts a program of another declaration to the workload's arguments; None: its text does not mention them."""

    names: tuple[str, ...] | Callable[[Target], tuple[str, ...]] = ()
    called: Callable[[CSource], CSource] | None = None


@dataclass(frozen=True)
class LoopUse:
    """open: loop orders, locations and annotations are tried after the rules, unless rules decide all of that. plain: devices can run loops without a
    schedule, which are the fallback if there is no other program."""

    open: bool = True
    plain: bool = True


@dataclass(frozen=True)
class CodeGenerator:
    """Turns loops into programs. emit: the text of a program; toolchain: builds it. A kind whose programs are not C has its own of both.

    intrinsics: instructions that programs may use if a processor has them, in order of preference; limits: what programs may not exceed, or a function of
    the target. cost: estimates the cost of programs (arithmetic for many at once, as for limits); None: the estimate for processors, by `Prior`.
    loops: how loops are treated besides rules. refusal: why devices of a target cannot run any program of a computation, with the numbers; '' if
    they can. It is called before anything is built.
    """

    emit: Callable[[Target, Loops, str], CSource] = _as_c
    toolchain: Callable[[Target], Toolchain] = _c_compiler
    intrinsics: tuple[Intrinsic, ...] = ()
    limits: tuple[Limit, ...] | Callable[[Target], tuple[Limit, ...]] = LIMITS
    cost: Callable[[Target, Loops], Row] | None = None
    loops: LoopUse = LoopUse()
    refusal: Callable[[Target, Dag], str] = _any
    algorithms: OwnAlgorithms = OwnAlgorithms()


@dataclass(frozen=True)
class Meaning:
    """How the options of a target combine. settled: resolves them against each other; raises TargetError for incompatible
    ones. words: a short description of the machine, if vectors and caches do not describe it best.
    """

    settled: Callable[[Target], Target] = _as_it_is
    words: Callable[[Target], str] | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of target. `default(mcpu)`: the target if only the processor is given; raises TargetError for an unknown one.

    unit, device: the unit of its devices, and the text of the default one, or functions of the
    target. codegen: how its programs are written and built. meaning: how its options combine.
    """

    name: str
    default: Callable[[str], Target]
    options: tuple[Option, ...]
    mcpu: str = "native"
    unit: Unit | Callable[[Target], Unit] = SECONDS
    device: str | Callable[[Target], str] = LOCAL
    codegen: CodeGenerator = CodeGenerator()
    meaning: Meaning = Meaning()


_kinds: dict[str, Kind] = {}
ALIASES = {"llvm": "cpu"}  # word in a text of a target -> kind


def register_kind(kind: Kind) -> Kind:
    """Register a kind of target. Raises TargetError if another has its name, or if no text of a target can begin with it."""
    if not isinstance(kind, Kind):
        raise TargetError(f"asked to register {kind!r:.80}, which is {with_article(type(kind).__name__)}; give a Kind of ansor.targets.base")
    if not re.fullmatch(r"[A-Za-z][\w-]*", kind.name):
        raise TargetError(f"asked to register target kind {kind.name!r}; give it a name of letters, digits, - and _: texts of targets begin with it")
    if kind.name in BUILTIN and kind.name not in _kinds:
        import_module(BUILTIN[kind.name])  # the name is ours, even if not imported yet
    if _kinds.get(kind.name, kind) is not kind or kind.name in ALIASES:
        raise TargetError(f"asked to register target kind {kind.name!r}, which exists already; choose another name")
    declare(kind.codegen.intrinsics)
    _kinds[kind.name] = kind
    return kind


def kind_names() -> list[str]:
    """Names of all kinds, including those of other packages."""
    from importlib.metadata import entry_points

    return sorted({*BUILTIN, *_kinds, *(point.name for point in entry_points(group=GROUP))})


def known_kinds() -> tuple[Kind, ...]:
    """The package's own kinds, and those registered or found so far."""
    for module in BUILTIN.values():
        import_module(module)
    return tuple(_kinds.values())


def find_kind(name: str) -> Kind:
    """The kind of that name. Other packages are searched only if we have none."""
    if name not in _kinds and name in BUILTIN:
        import_module(BUILTIN[name])
    if name not in _kinds:
        _ask_packages(name)
    if name not in _kinds:
        why = f": {name} programs cannot be generated yet" if name in DEVICES else kind_hint(name, map(find_kind, BUILTIN), kind_names())
        kinds = f"{', '.join(kind_names())} (and llvm, which is cpu), such as 'cpu -threads=1' or 'micro -board=mps2-an386'"
        raise TargetError(f"asked for target kind {name!r}{why}; the kinds are {kinds}")
    return _kinds[name]


def _ask_packages(name: str) -> None:
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        if point.name == name:
            register_kind(_loaded(point))


def _loaded(point: Any) -> Kind:
    """The kind that an entry point names. Raises TargetError if it cannot be loaded or has another name."""
    what = f"target kind {point.name!r}, which a package offers as {point.value}"
    try:
        kind: Kind = point.load()
    except Exception as error:  # this runs another package's code
        raise TargetError(f"asked for {what}: it cannot be loaded ({type(error).__name__}: {error}); fix or remove that package") from error
    if getattr(kind, "name", None) != point.name:
        raise TargetError(f"asked for {what}: {getattr(kind, 'name', kind)!r:.80} is there; name a Kind with that name")
    return kind


declare_later(known_kinds)


def find_intrinsic(name: str) -> Intrinsic | None:
    """The intrinsic of that name, of any known kind. Defined here because importing this module makes kinds known."""
    return intrinsic_named(name)


def parse_target(text: str | Target) -> Target:
    """Parse a target: a kind and options, `cpu -mcpu=znver3 -threads=1`. A Target is returned unchanged.

    `-cc` names a program that is started later: use `program_options.read_target` for text from a file.
    Raises TargetError for an unknown kind, option or processor, and for a value out of range.
    """
    if isinstance(text, Target):
        return text
    if not isinstance(text, str):
        raise TargetError(f"asked for target {text!r}; give a text such as 'cpu -threads=1', or a Target")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TargetError(f"asked for target {text!r}: {error}; close the quotation") from None
    if not words:
        raise TargetError(f"asked for a target, found an empty text; name a kind: {', '.join(kind_names())}")
    kind = find_kind(ALIASES.get(words[0], words[0]))
    given = _given(kind, words[1:])
    target = _default(kind, given.pop("mcpu", kind.mcpu))
    options = {option.field: option for option in kind.options}
    for field, value in given.items():
        target = options[field].put(target, options[field].parse(kind.name, value, options[field].of(target)))
    return kind.meaning.settled(target)


def _default(kind: Kind, mcpu: str) -> Target:
    target = kind.default(mcpu)
    if not isinstance(target, Target) or target.kind != kind.name:
        found = f"a target of kind {target.kind!r}" if isinstance(target, Target) else with_article(type(target).__name__)
        raise TargetError(f"the default() of target {kind.name!r} returns {found}; return Target(kind={kind.name!r}, ...)")
    return target


def _given(kind: Kind, words: list[str]) -> dict[str, str]:
    """Field -> text. `-name=value` and `-name value` are the same."""
    known = {option.name: option for option in kind.options}
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in known:
            listed = ", ".join(f"-{option.name} ({option.help})" for option in kind.options)
            hint = option_hint(name, value or next((one for one in rest if not one.startswith("-")), ""), known)
            raise TargetError(f"asked for target {kind.name} with {word!r}, which is not one of its options{hint}; the options are {listed}")
        if not equals:
            if not rest or rest[0].startswith("-") and known[name].reading != "features":
                raise TargetError(f"asked for target {kind.name} with -{name} and no value; write -{name}=VALUE ({known[name].help})")
            value = rest.pop(0)
        if known[name].field in given:
            raise TargetError(f"asked for target {kind.name} with -{name} twice; give it once")
        given[known[name].field] = value
    return given
