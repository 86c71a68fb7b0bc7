"""The explanation of a workload's best program, as values. `ansor.explain.explanation` gathers them, `ansor.explain.text` formats them."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.explain.steps_in_words import Said
from ansor.targets.unit import SECONDS, Unit


@dataclass(frozen=True)
class AxisTiles:
    """How an axis of a stage, or several fused into one, is cut: `lengths` from outermost to innermost, one for an axis left whole.

    extent: as declared; where it does not divide, the product of the lengths is larger, and where the stage is computed piece by piece smaller.
    """

    stage: str
    axis: str
    extent: int
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class RegisterTile:
    """What is held in vector registers while the innermost reduction runs.

    rows x vectors: accumulators of the result; accumulators: those and what an instruction holds besides; most: how many a legal program may have;
    operands: vectors loaded beside them; registers: of the core; partial: each accumulator holds partial results along the reduction.
    """

    rows: int
    vectors: int
    accumulators: int
    most: int
    operands: int
    registers: int
    partial: bool


@dataclass(frozen=True)
class Level:
    """A loop around the main statement: what one iteration of it touches. `loop` '' is the whole nest. `runs`: parallel, vectors or written out."""

    loop: str
    extent: int
    runs: str
    bytes: float
    fits: str


@dataclass(frozen=True)
class Cost:
    """Cycles of a statement by the estimate, by the threads that have work: arithmetic and loads from the first cache, and transfers into it."""

    stage: str
    instructions: float
    transfers: float

    @property
    def cycles(self) -> float:
        return self.instructions + self.transfers


@dataclass(frozen=True)
class Program:
    """A measured program. `algorithm`: the alternative it is of, "" for the declaration itself; measured: its cost, in the unit of the trials;
    main: the stage with the most work; costs: estimates of its statements; whole: there is one for all of them, by the target's own estimate."""

    algorithm: str
    measured: float
    main: str
    said: tuple[Said, ...]
    tiles: tuple[AxisTiles, ...]
    costs: tuple[Cost, ...]
    whole: bool = False

    @property
    def instructions(self) -> float:
        return sum(cost.instructions for cost in self.costs)

    @property
    def transfers(self) -> float:
        return sum(cost.transfers for cost in self.costs)

    @property
    def cycles(self) -> float:
        return self.instructions + self.transfers


@dataclass(frozen=True)
class Main:
    """The statement with the most iterations. loaded: bytes that enter each cache over the whole run, by its name."""

    stage: str
    tiles: tuple[AxisTiles, ...]
    register_tile: RegisterTile | None
    levels: tuple[Level, ...]
    loaded: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Tried:
    """A rule or an algorithm that the best program does without. measured: cost of the best program with it, infinite when none was valid."""

    name: str
    trials: int
    measured: float


@dataclass(frozen=True)
class Rules:
    """fired: those that led to the best program, with their stages; idle: asked about the main stage, and not applicable;
    without: applicable, but not in it.
    """

    fired: tuple[tuple[str, tuple[str, ...]], ...]
    idle: tuple[str, ...]
    without: tuple[Tried, ...]


@dataclass(frozen=True)
class Ranking:
    """How a judge orders the valid trials: Spearman's correlation with the measured order, and the place (from 1) of the best among `count`."""

    correlation: float
    place: int
    count: int


@dataclass(frozen=True)
class Rival:
    """A program that lost, and how it differs: what is said of the best only and of it only, and (stage, axis, lengths of the best, lengths of it)."""

    program: Program
    ours: tuple[Said, ...]
    theirs: tuple[Said, ...]
    tiles: tuple[tuple[str, str, tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True)
class Work:
    """What a workload asks for. flop: of one run, as declared; floor: cycles that the arithmetic takes at least, None for other than floating-point sums."""

    name: str
    flop: int
    floor: float | None


@dataclass(frozen=True)
class Place:
    """Where it runs. fill: share of a cache that a piece may take; peak_gflops: of the target, None when it is not known."""

    target: str
    caches: tuple[tuple[str, int], ...]
    fill: float
    peak_gflops: float | None


@dataclass(frozen=True)
class Trials:
    """How many there are, how many are valid, what became of the others; median: of the valid ones' costs; unit: of all costs."""

    count: int
    valid: int
    failures: tuple[tuple[str, int], ...]
    median: float
    unit: Unit = SECONDS


@dataclass(frozen=True)
class Rankings:
    """How well trials are told apart: by the estimate, and by a model that learned from some of them, None where none was asked."""

    by_estimate: Ranking
    by_model: Ranking | None


@dataclass(frozen=True)
class Lost:
    """What lost: the best program of another sketch, and of the same with other numbers; the other algorithms that were searched, "" for the declaration."""

    other_sketch: Rival | None
    other_tiles: Rival | None
    algorithms: tuple[Tried, ...]


@dataclass(frozen=True)
class Explanation:
    """Everything that is told of a workload's best program."""

    work: Work
    place: Place
    trials: Trials
    best: Program
    rules: Rules
    main: Main
    rankings: Rankings
    lost: Lost
