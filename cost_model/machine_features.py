"""The columns of a feature row that describe the parts of a statement's estimate, and the machine.

Numbers relative to the estimate, to a cache or to a register file mean the same for small and large operators, so that learning transfers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansor.cost_model.alignment import across_lines
from ansor.cost_model.analytic import Core, Estimate
from ansor.cost_model.buffer_features import Statement
from ansor.cost_model.feature_table import MACHINE_NAMES
from ansor.cost_model.pages import LOOK_UP, looked_up, touched_pages
from ansor.cost_model.remainders import remainders_of
from ansor.ir.columns import Row, choose, larger, log2, row
from ansor.ir.loops import Buffer
from ansor.schedule.legality import accumulators, registers_for


def machine_columns(statement: Statement, estimate: Estimate, operations: float, core: Core) -> dict[str, Row]:
    """Name -> value, of the columns `MACHINE_NAMES`. operations: arithmetic ones per iteration."""
    return dict(zip(MACHINE_NAMES, _values(statement, estimate, operations, core), strict=True))


def _values(statement: Statement, estimate: Estimate, operations: float, core: Core) -> Iterator[Row]:
    nest, tile, lanes, instructions = statement.nest, estimate.tile, estimate.lanes, estimate.instructions
    total = larger(instructions + sum(estimate.transfers, start=0.0), 1.0)
    yield log2(tile.vectors)
    yield log2(1.0 + tile.loads)
    yield log2((1.0 + tile.loads) / tile.vectors)
    yield log2(tile.elements * tile.packed / (tile.vectors * lanes))
    yield log2(tile.vectors / accumulators(registers_for(nest.path, nest.store, core)))
    yield log2(larger(tile.bodies / tile.runs, 1.0))
    yield row(tile.partial > 1)
    yield log2(1.0 + sum((count * _across_lines(statement, buffer, core) for buffer, count in tile.reads.items()), start=0.0))
    yield _across_lines(statement, nest.store.buffer, core)
    remainders = statement.once("remainders", lambda: remainders_of(nest))
    yield from (remainders.excess, remainders.inner_excess, remainders.cut)
    yield log2(total * lanes / larger(nest.iterations * operations, 1.0))
    yield log2((1.0 + instructions) / total)
    for load in estimate.transfers:
        yield log2((1e-3 + load) / total)
    amounts = (statement.bytes, statement.room, touched_pages(statement))
    run, room, pages = statement.once(("of a run", lanes, core.prior.issue.optimizes), lambda: [_of_a_run(statement, one, tile.runs) for one in amounts])
    yield _share(run, core.caches.l1_bytes)
    yield log2(room / run)
    yield _share(run, core.caches.l2_bytes)
    yield _share(statement.bytes[0], core.caches.l2_bytes)
    yield log2(pages)
    yield log2((1e-3 + LOOK_UP * looked_up(statement)) / total)
    yield log2(estimate.threads)
    for number in (core.vector_bytes, core.vector_registers, *core.caches.sizes, core.threads):
        yield log2(1.0 + number)


def _across_lines(statement: Statement, buffer: Buffer, core: Core) -> Row:
    touched, width, line = statement.footprints[buffer], core.vector_bytes, core.caches.line_bytes
    shares = ("across lines", buffer, width, line)
    return statement.once(shares, lambda: across_lines(statement.nest, touched, statement.layouts[buffer].element_bytes, width, line))


def _share(touched: Row, cache: int) -> Row:
    return log2(touched / cache) if cache else 0.0


def _of_a_run(statement: Statement, amounts: Sequence[Row], runs: Row) -> Row:
    """Of amounts by boundary, the one for a run of a register tile."""
    found = amounts[-1]
    for amount, outside in reversed(list(zip(amounts[:-1], statement.nest.counts.outside[:-1], strict=True))):
        found = choose(outside >= runs, amount, found)
    return found
