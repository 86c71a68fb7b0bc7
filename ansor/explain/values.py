"""The explanation of a workload's best program, as values. `ansor.explain.explanation` gathers them, `ansor.explain.text` formats them."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.explain.steps_in_words import Fact
from ansor.targets.unit import SECONDS, Unit


@dataclass(frozen=True)
class AxisTiles:
    """How an axis of a stage, or several fused ones, is split. lengths: from the outside in, a single one if it is not split.

    extent: as declared. If the lengths do not divide it, their product is larger; if the stage is computed tile by tile, their product is smaller.
    """

    stage: str
    axis: str
    extent: int
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class RegisterTile:
    """The contents of vector registers while the innermost reduction runs.

    rows x vectors: accumulators of the result; accumulators: these and any others that an instruction holds; most: the limit for legal programs;
    operands: vectors loaded in addition; registers: of the core; scalar: its vectors are single numbers; partial: each accumulator holds partial results
    along the reduction.
    """

    rows: int
    vectors: int
    accumulators: int
    most: int
    operands: int
    registers: int
    scalar: bool
    partial: bool


@dataclass(frozen=True)
class Level:
    """A loop around the main statement. loop: '' for the whole nest; runs: parallel, vectors or unrolled; bytes: touched by one iteration; fits: the smallest
    cache that holds them."""

    loop: str
    extent: int
    runs: str
    bytes: float
    fits: str


@dataclass(frozen=True)
class Cost:
    """Estimated cycles of a statement. instructions: arithmetic and loads from the first cache, divided by the threads with work; transfers: into the caches,
    divided likewise; fork: of starting threads."""

    stage: str
    instructions: float
    transfers: float
    fork: float = 0.0

    @property
    def cycles(self) -> float:
        return self.instructions + self.transfers + self.fork


@dataclass(frozen=True)
class Program:
    """A measured program. `algorithm`: the alternative algorithm, "" for the declaration itself; measured: its cost, in the unit of the trials;
    main: the stage of its main statement; costs: estimates of its statements; workers: the stages that do the arithmetic of a declared one, each with that
    stage; whole: `costs` has a single one for all, by the target's own estimate."""

    algorithm: str
    measured: float
    main: str
    facts: tuple[Fact, ...]
    tiles: tuple[AxisTiles, ...]
    costs: tuple[Cost, ...]
    workers: tuple[tuple[str, str], ...] = ()
    whole: bool = False

    @property
    def instructions(self) -> float:
        return sum(cost.instructions for cost in self.costs)

    @property
    def transfers(self) -> float:
        return sum(cost.transfers for cost in self.costs)

    @property
    def fork(self) -> float:
        return sum(cost.fork for cost in self.costs)

    @property
    def cycles(self) -> float:
        return self.instructions + self.transfers + self.fork


@dataclass(frozen=True)
class MainStatement:
    """The statement with the most estimated cycles or, if the target has its own estimate of whole programs, the reduction with the most iterations.

    loaded: bytes loaded into each cache over the whole run, by its name.
    """

    stage: str
    tiles: tuple[AxisTiles, ...]
    register_tile: RegisterTile | None
    levels: tuple[Level, ...]
    loaded: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class UnusedOption:
    """A rule or an algorithm that the best program does not use. measured: the best cost with it, infinite if none was valid."""

    name: str
    trials: int
    measured: float


@dataclass(frozen=True)
class Rules:
    """The rules. fired: those that led to the best program, with their stages; idle: those that do not apply to the main stage;
    without: those that apply to it, but are not used; stage: the main stage as declared.
    """

    fired: tuple[tuple[str, tuple[str, ...]], ...]
    idle: tuple[str, ...]
    without: tuple[UnusedOption, ...]
    stage: str


@dataclass(frozen=True)
class Ranking:
    """How a ranking orders the valid trials: Spearman's correlation with the measured order, and the rank (from 1) of the best among `count`."""

    correlation: float
    place: int
    count: int


@dataclass(frozen=True)
class Rival:
    """A program that lost, and how it differs: facts about the best only, about this one only, and (stage, axis, lengths of the best, its lengths)."""

    program: Program
    ours: tuple[Fact, ...]
    theirs: tuple[Fact, ...]
    tiles: tuple[tuple[str, str, tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True)
class Roof:
    """The limits of a target's programs: 10^9 operations per second, and 10^9 bytes per second from memory."""

    gflops: float
    gbytes: float

    @property
    def knee(self) -> float:
        """With fewer operations a byte than this, memory is the limit."""
        return self.gflops / self.gbytes

    def at(self, intensity: float) -> float:
        """The most 10^9 operations per second at so many operations a byte."""
        return min(self.gflops, intensity * self.gbytes)


@dataclass(frozen=True)
class Work:
    """The work of a workload. flop: of one run, as declared; bytes: of all arguments, each moved once; fits: the smallest cache that holds them, or memory;
    floor: minimal cycles of the arithmetic, None unless it is floating-point sums."""

    name: str
    flop: int
    bytes: int
    fits: str
    floor: float | None


@dataclass(frozen=True)
class Place:
    """Where the program runs. fill: share of a cache that a tile may take; peak_gflops, bandwidth_gbytes: of the target, None if unknown; clock: cycles a
    second that the peak takes, None if it is unknown."""

    target: str
    caches: tuple[tuple[str, int], ...]
    fill: float
    peak_gflops: float | None
    bandwidth_gbytes: float | None = None
    clock: float | None = None


@dataclass(frozen=True)
class Trials:
    """The trials. count: all; valid: how many succeeded; failures: why the others failed; median: of the valid costs; unit: of all costs."""

    count: int
    valid: int
    failures: tuple[tuple[str, int], ...]
    median: float
    unit: Unit = SECONDS


@dataclass(frozen=True)
class Rankings:
    """How well programs are ranked: by the estimate, and by a model trained on some of the trials, or None."""

    by_estimate: Ranking
    by_model: Ranking | None


@dataclass(frozen=True)
class Alternatives:
    """What lost: the best program of another sketch, and of the same sketch with other tiles; the other algorithms searched, "" for the declaration."""

    other_sketch: Rival | None
    other_tiles: Rival | None
    algorithms: tuple[UnusedOption, ...]


@dataclass(frozen=True)
class Explanation:
    """Everything known about a workload's best program."""

    work: Work
    place: Place
    trials: Trials
    best: Program
    rules: Rules
    main: MainStatement
    rankings: Rankings
    lost: Alternatives
