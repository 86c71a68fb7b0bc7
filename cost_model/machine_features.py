"""The columns of a feature row that describe the parts of a statement's estimate, and the machine.

Numbers relative to the estimate, to a cache or to a register file mean the same for small and large operators, so that learning transfers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansor.cost_model.alignment import loads_across_lines, share_across_lines
from ansor.cost_model.analytic import Core, Estimate, numbers_of
from ansor.cost_model.buffer_features import Statement
from ansor.cost_model.pages import LOOK_UP, looked_up, touched_pages
from ansor.cost_model.register_tile import Tile
from ansor.cost_model.remainders import remainders_of
from ansor.ir.columns import Row, choose, larger, log2, row
from ansor.schedule.legality import accumulators, registers_for


def machine_columns(statement: Statement, estimate: Estimate, operations: float, core: Core) -> dict[str, Row]:
    """Name -> value, of the columns `MACHINE_NAMES`. operations: arithmetic ones per iteration."""
    own = statement.once(("machine columns", numbers_of(core)), lambda: _own(statement, estimate.tile, estimate.lanes, core))
    return own | _of_the_estimate(statement, estimate, operations) | {"threads": log2(1.0 + core.threads)}


def _own(statement: Statement, tile: Tile, lanes: int, core: Core) -> dict[str, Row]:
    """The columns that depend neither on the rest of the program nor on the threads."""
    nest = statement.nest
    remainders, amounts = remainders_of(nest), (statement.bytes, statement.room, touched_pages(statement))
    run, room, pages = (_of_a_run(statement, one, tile.runs) for one in amounts)
    return {
        "tile_vectors": log2(tile.vectors),
        "tile_loads": log2(1.0 + tile.loads),
        "tile_loads_per_vector": log2((1.0 + tile.loads) / tile.vectors),
        "tile_lanes_used": log2(tile.elements * tile.packed / (tile.vectors * lanes)),
        "tile_registers_used": log2(tile.vectors / accumulators(registers_for(nest.path, nest.store, core))),
        "tile_steps": log2(larger(tile.bodies / tile.runs, 1.0)),
        "tile_in_partial_sums": row(tile.partial.lanes > 1),
        "tile_loads_across_lines": log2(1.0 + loads_across_lines(statement, tile.reads, lanes, core.caches.line_bytes)),
        "stored_across_lines": share_across_lines(statement, nest.store.buffer, lanes, core.caches.line_bytes),
        "rest_excess": remainders.excess,
        "rest_inner_excess": remainders.inner_excess,
        "rest_cut": remainders.cut,
        "bytes_of_a_run_in_l1": _share(run, core.caches.l1_bytes),
        "room_of_a_run": log2(room / run),
        "bytes_of_a_run_in_l2": _share(run, core.caches.l2_bytes),
        "bytes_in_all_in_l2": _share(statement.bytes[0], core.caches.l2_bytes),
        "pages_of_a_run": log2(pages),
        "vector_bytes": log2(1.0 + core.vector_bytes),
        "vector_registers": log2(1.0 + core.vector_registers),
        **{f"l{level}_bytes": log2(1.0 + size) for level, size in enumerate(core.caches.sizes, start=1)},
    }


def _of_the_estimate(statement: Statement, estimate: Estimate, operations: float) -> dict[str, Row]:
    """The columns that compare with the estimate of the statement in its program."""
    instructions, lanes = estimate.instructions, estimate.lanes
    total = larger(instructions + sum(estimate.transfers, start=0.0), 1.0)
    return {
        "estimated_cycles_per_operation": log2(total * lanes / larger(statement.nest.iterations * operations, 1.0)),
        "share_of_instructions": log2((1.0 + instructions) / total),
        **{f"share_of_loads_into_l{level}": log2((1e-3 + load) / total) for level, load in enumerate(estimate.transfers, start=1)},
        "share_of_pages": log2((1e-3 + LOOK_UP * looked_up(statement)) / total),
        "busy_threads": log2(estimate.threads),
    }


def _share(touched: Row, cache: int) -> Row:
    return log2(touched / cache) if cache else 0.0


def _of_a_run(statement: Statement, amounts: Sequence[Row], runs: Row) -> Row:
    """Of amounts by boundary, the one for a run of a register tile."""
    found = amounts[-1]
    for amount, outside in reversed(list(zip(amounts[:-1], statement.nest.counts.outside[:-1], strict=True))):
        found = choose(outside >= runs, amount, found)
    return found
