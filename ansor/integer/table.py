"""Tables of what each layer or kernel of an integer network needs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from ansor.integer.network_code import NetworkCode

HEAD = ("layer", "kind", "output", "MACs", "RAM alive", "workspace", "constants", "kernel")


def table_text(code: NetworkCode) -> str:
    """A line for each layer, with the bytes that are live while it runs, its workspace, and the bytes of its constants; then the totals."""
    rows: list[tuple[str, ...]] = [HEAD]
    for step, call in enumerate(code.calls):
        kernel, one = code.kernels[call.kernel], call.operator
        shape = code.network.tensors[one.output].shape
        constants = sum(code.constants[name].nbytes for name in call.constants)
        numbers = (one.macs(shape), code.plan.alive[step], kernel.code.workspace_bytes, constants)
        rows.append((one.output, one.kind, "x".join(map(str, shape)), *map(str, numbers), kernel.code.entry))
    ram = f"{code.arena_bytes} bytes of arena and {code.stack_bytes} of local buffers"
    total = f"{code.network.macs} MACs; RAM: {ram}; flash: {code.constant_bytes} bytes of constants, and the code"
    return "\n".join([*_lines(rows, range(3, 7)), total])


def profile_text(code: NetworkCode, layers: Sequence[float], unit: str, code_bytes: Mapping[str, int]) -> str:
    """A line for each kernel, the most expensive first: total cost of its calls, peak RAM of a call, constants of all calls, bytes of its code.

    layers: cost of each layer in `unit`; code_bytes: code size of each kernel, by the name of its function.
    """
    rows: list[tuple[str, ...]] = [("kernel", "calls", "MACs", unit, "share", "per MAC", "RAM", "constants", "code")]
    total, shapes = sum(layers), code.network.tensors
    found = []
    for number, kernel in enumerate(code.kernels):
        steps = [step for step, call in enumerate(code.calls) if call.kernel == number]
        cost, calls = sum(layers[step] for step in steps), [code.calls[step] for step in steps]
        macs = sum(call.operator.macs(shapes[call.operator.output].shape) for call in calls)
        constants = sum(code.constants[name].nbytes for call in calls for name in call.constants)
        each = f"{cost / macs:.2f}" if macs else "-"
        ram, name = max(code.plan.alive[step] for step in steps) + kernel.stack_bytes, kernel.code.entry
        cells = (str(len(steps)), f"{macs:,}", f"{cost:,.0f}", f"{cost / max(total, 1):.1%}", each, f"{ram:,}", f"{constants:,}", f"{code_bytes[name]:,}")
        found.append((cost, (name, *cells)))
    rows += [row for _, row in sorted(found, key=lambda one: -one[0])]
    return "\n".join(_lines(rows, range(1, len(rows[0]))))


def _lines(rows: Sequence[Sequence[str]], right: Container[int]) -> list[str]:
    """The rows as lines with aligned columns; `right`: the columns that are right-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append("  ".join(cell.rjust(width) if place in right else cell.ljust(width) for place, (cell, width) in cells).rstrip())
    return lines
