"""What each layer of an integer network needs, as a table."""

from __future__ import annotations

from ansor.integer.network_code import NetworkCode

HEAD = ("layer", "kind", "output", "MACs", "RAM alive", "workspace", "constants", "kernel")


def table_text(code: NetworkCode) -> str:
    """A line for each layer, and the sums: bytes that are alive while it runs, workspace among them, and bytes of its constants."""
    rows: list[tuple[str, ...]] = [HEAD]
    for step, call in enumerate(code.calls):
        kernel, one = code.kernels[call.kernel], call.operator
        shape = code.network.tensors[one.output].shape
        constants = sum(code.constants[name].nbytes for name in call.constants)
        numbers = (one.macs(shape), code.plan.alive[step], kernel.code.workspace_bytes, constants)
        rows.append((one.output, one.kind, "x".join(map(str, shape)), *map(str, numbers), kernel.code.entry))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    right = range(3, 7)
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append("  ".join(cell.rjust(width) if place in right else cell.ljust(width) for place, (cell, width) in cells).rstrip())
    ram = f"{code.arena_bytes} bytes of arena and {code.stack_bytes} of local buffers"
    total = f"{code.network.macs} MACs; RAM: {ram}; flash: {code.constant_bytes} bytes of constants, and the code"
    return "\n".join([*lines, total])
