"""A plan as C: one function that checks the indices and makes the calls, in order."""

from __future__ import annotations

from ansor.codegen.exported import ALONE
from ansor.graph.plan import ARENA, Check, NetworkPlan, Place

ENTRY = "ansor_network_run"
DECLARATION = "void *const *args, unsigned char *workspace, ansor_parallel_for_t parallel_for, void *pool"
RUN = "typedef void (*ansor_parallel_for_t)(void *pool, void (*body)(void *, long, long), void *ctx, long n);"
ARGUMENTS = "unsigned char *arena, const unsigned char *constants, unsigned char *workspace, ansor_parallel_for_t parallel_for, void *pool"
_HEAD = f"""\
/* A network: its kernels in order. Returns -1, or the number of the check that found an index out of range. */

#include <stdint.h>

{RUN}
"""


def plan_text(plan: NetworkPlan, entry: str = ENTRY) -> str:
    """The C text; `arena`, `constants` and `workspace` are aligned to 64 bytes."""
    lines = [_HEAD]
    lines += [f"void {kernel.entry}({DECLARATION});" for kernel in plan.kernels]
    lines += ["", f"int64_t {entry}({ARGUMENTS});"]
    lines += [ALONE] * (plan.threads > 1)
    lines += [
        "",
        f"int64_t {entry}({ARGUMENTS}) {{",
        "    (void)arena, (void)constants, (void)workspace, (void)parallel_for, (void)pool;",
    ]
    lines += ["    if (!parallel_for) parallel_for = alone;"] * (plan.threads > 1)
    number = 0
    for call in plan.calls:
        for check in call.checks:
            lines += _check(check, number)
            number += 1
        kernel = plan.kernels[call.kernel]
        pool = "parallel_for, pool" if kernel.threads > 1 else "0, 0"
        places = ", ".join(map(_place, call.places))
        lines += ["    {", f"        void *const args[] = {{{places}}};", f"        {kernel.entry}(args, workspace, {pool});", "    }"]
    return "\n".join([*lines, "    return -1;", "}", ""])


def _place(place: Place) -> str:
    return f"arena + {place.offset}" if place.memory == ARENA else f"(void *)(constants + {place.offset})"


def _check(check: Check, number: int) -> list[str]:
    """C for one check. Viewed as unsigned, negative indices are large."""
    kind = f"{check.dtype if check.dtype.startswith('u') else 'u' + check.dtype}_t"
    return [
        f"    for (int64_t i = 0; i < {check.count}; i++) {{",
        f"        if ((({kind} const *)({_place(check.place)}))[i] >= UINT64_C({check.rows})) return {number};",
        "    }",
    ]
