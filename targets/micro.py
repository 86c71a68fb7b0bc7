"""The kind `micro`: boards without an operating system. A board is a data file: `-board=NAME`, or the path of your own.

Programs are images (`ansor.codegen.image`). Costs are what the board counts.
"""

from __future__ import annotations

from dataclasses import replace

from ansor.codegen.building import Toolchain
from ansor.codegen.dialect import Dialect
from ansor.codegen.generate import most_iterations
from ansor.codegen.image.board import Board
from ansor.codegen.image.toolchain import ImageToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.errors import TargetError
from ansor.ir.columns import Flag
from ansor.ir.dag import Dag
from ansor.ir.loops import Loops, stores
from ansor.schedule.legality import BESIDE, LIMITS
from ansor.schedule.machine import Limit, Machine
from ansor.targets import dsp, helium
from ansor.targets.base import Bounds, CodeGenerator, Kind, Meaning, Option, OwnAlgorithms, Target, register_kind
from ansor.targets.boards.catalogue import find_board
from ansor.targets.device_dtypes import of_bfloat16
from ansor.targets.hardware import Caches, Hardware, Memory
from ansor.targets.prior import BOARDS, Issue, Overhead, Prior, Reduction, Traffic
from ansor.targets.room import needs_of, room_of, too_large
from ansor.targets.unit import Unit

EMBEDDED = "zig"  # the only compiler that can cross-compile without further tools
INTRINSICS = (*helium.DOTS, *dsp.DOTS, dsp.PAIRS)  # the first that fits is used
RULES = (
    "always_inline",
    "simplify_const_tensor",
    "add_rfactor",
    "pack_constants",
    "tile_with_split",
    "add_cache_write",
    "tensorize",
    "multi_level_tiling_with_fusion",
    "multi_level_tiling",
    "skip_stage",
)
"""The rules of `cpu`, without those for vectors or caches."""

ALGORITHMS = ("winograd_integer",)
PACKED = {"riscv32": ("bytes_in_32", "winograd_tiles"), "riscv64": ("packed_products_64", "winograd_tiles")}
"""For cores that multiply one register at a time, by register size. Others have multiply-add instructions."""

OPTIONS = (
    Option("board", "mcpu", "text", "the board, or the path of a file that describes one", always=True),
    Option("stack", "hardware.memory.stack_bytes", "size", "local buffers", Bounds(64)),
    Option("workspace", "hardware.memory.workspace_bytes", "size", "whole intermediates of a kernel", Bounds(64)),
    Option("code", "hardware.memory.code", "text", "the memory that code is in: ram or flash, or its name"),
    Option("index", "dialect.index_bits", "count", "bits of loop variables: 16, 32 or 64", Bounds(16, 64, power=True)),
)
# Only instructions count: nothing runs in parallel, and memory is as fast as a register. The weights for boards were learned with estimates that ignore
# compiler optimisations.
COUNTED = Prior(
    Issue(arithmetic=1.0, loads=1.0, across=0.0, latency=1.0, window=1.0, each=1.0, optimizes=False), Overhead(call=80.0, result=3.0, spill=2.0, loop=4.0),
    Traffic((1e6, 1e6, 1e6)), Reduction(1.0, 1.0, 2.0), BOARDS,
)  # fmt: skip


SCALAR = 4
"""The vector size of boards without vectors."""
INDEX = {16: "short", 32: "int", 64: "long long"}
"""Types of loop variables, by their bits."""


def board_of(target: Target) -> Board:
    """The board of a target. Raises TargetError for an unknown one."""
    return find_board(target.mcpu).with_code(target.hardware.memory.code)


def _default(name: str) -> Target:
    board = find_board(name)
    stack, room = board.run.stack * 3 // 4, board.data.size - board.run.stack
    memory = Memory(stack_bytes=stack, workspace_bytes=room, code=board.code.name)
    core = board.core
    group = core.vectors.group
    registers = core.registers if group == 1 else core.registers // group + BESIDE
    hardware = Hardware(1, core.widest, registers, Caches(board.data.size), memory, frozenset(core.features), group)
    dialect = Dialect(index="int", index_bits=32, alignment=max(4, core.vectors.bytes), pool=False, hosted=False, apart=True)
    return Target("micro", name, hardware, rules=RULES, dialect=dialect, prior=COUNTED)


def _settled(target: Target) -> Target:
    """Resolve the memory of `-code`. Raises TargetError if there is none, or for more stack than the board reserves."""
    board, memory = find_board(target.mcpu), target.hardware.memory
    if memory.stack_bytes > board.run.stack:
        has = f"the whole stack of {board.name} has {board.run.stack:,} bytes (`run.stack` of its file; -stack is the part of it for local buffers)"
        raise TargetError(f"asked for target micro with -stack={memory.stack_bytes:,} bytes for local buffers, but {has}; ask for less, or raise run.stack")
    names = [one.name for one in board.memories]
    ram = board.data if board.code.flash else board.code
    meant = {"flash": next((one.name for one in board.memories if one.flash), ""), "ram": ram.name} | {name: name for name in names}
    if not meant.get(memory.code):
        lacks = "has no flash memory" if memory.code == "flash" else "has no memory of that name"
        raise TargetError(f"asked for target micro with -code={memory.code}, but {board.name} {lacks}; its memories are {', '.join(names)}")
    dialect = replace(target.dialect, index=INDEX[target.dialect.index_bits])
    return replace(target, hardware=replace(target.hardware, memory=replace(memory, code=meant[memory.code])), dialect=dialect)


def _algorithms(target: Target) -> tuple[str, ...]:
    core = board_of(target).core
    packed = PACKED.get(core.architecture, ())
    return (*ALGORITHMS, *packed) if not target.intrinsics and core.vectors.bytes <= SCALAR else ALGORITHMS


def _words(target: Target) -> str:
    """A board's memories and its unit of cost, in words."""
    board = board_of(target)
    memories = ", ".join(f"{one.name} {one.size >> 10:,} KiB{' (flash)' if one.flash else ''}" for one in board.memories)
    return f"{board.about}; {memories}; code in {board.code.name}; counts {_unit(target)}"


def _has_room(loops: Loops, machine: Machine) -> Flag:
    """Whether arguments, intermediates and code fit on the board beside the trial harness; for a part of a network, only whether its code does."""
    assert isinstance(machine, Target)
    board = board_of(machine)
    needs = needs_of(loops, board, machine.alignment)
    return room_of(board).holds(needs) if machine.hardware.memory.measured else needs.code <= board.code.size


def _short_loops(loops: Loops, machine: Machine) -> Flag:
    """Whether loop variables can hold their numbers of iterations."""
    assert isinstance(machine, Target)
    most = most_iterations(machine.dialect.index_bits)
    result: Flag = True
    for path, _ in stores(loops.body) if machine.dialect.index_bits < 32 else ():
        for loop in path:
            result = result & (loop.var.extent < most)
    return result


def _refusal(target: Target, dag: Dag) -> str:
    if refused := of_bfloat16(target, dag):
        return refused
    most = most_iterations(target.dialect.index_bits)
    longest = max((extent for one in dag.stages for extent in one.shape), default=0)
    if longest >= most:
        return f"a dimension of {longest:,} is too long for a loop with -index={target.dialect.index_bits}, whose limit is {most:,}; choose smaller sizes"
    large = too_large(dag, board_of(target))
    return f"{large}; choose smaller sizes, or another board" if large else ""


def _toolchain(target: Target) -> Toolchain:
    return ImageToolchain(find_compiler(EMBEDDED), board_of(target))


def _unit(target: Target) -> Unit:
    return Unit.from_text(board_of(target).counter.unit)


def _device(target: Target) -> str:
    return board_of(target).run.device


_LIMITS = (*LIMITS, Limit("room", _has_room), Limit("index", _short_loops))
_CODE = CodeGenerator(toolchain=_toolchain, intrinsics=INTRINSICS, limits=_LIMITS, refusal=_refusal, algorithms=OwnAlgorithms(_algorithms))
MICRO = register_kind(Kind("micro", _default, OPTIONS, "mps2-an386", _unit, _device, _CODE, Meaning(_settled, _words)))
