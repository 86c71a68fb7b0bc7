"""Compares attention in blocks with whole attention and with PyTorch's `scaled_dot_product_attention`, by length of the sequence. Nothing is tuned.

    python benchmarks/attention.py [--tokens 197 577 1024 2048] [--heads 12] [--width 64] [--threads 1]

Each row is a layer: queries, keys and values from one dense layer, attention with or without a causal mask, and a dense layer. `whole / blocks` and
`eager / blocks`: how many times as fast blocks are, medians over turns. `memory`: of the activations, whole and in blocks. Small attention stays whole: then
there is one block. Weights are random. Exits with 1 if a result in blocks differs from PyTorch's.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from unittest.mock import patch

import torch
from common import add_target, console, machine_line, parser, relative_error, short, table, target_of, use_threads
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import ansor
from ansor.graph import attention
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract
from ansor.measure.interleaved import interleaved, ratio
from ansor.support.text import format_bytes

TOLERANCE = 1e-4


class Layer(nn.Module):
    """Attention over tokens, [1, tokens, heads * width] to the same."""

    def __init__(self, heads: int, width: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inward, self.outward = nn.Linear(heads * width, 3 * heads * width), nn.Linear(heads * width, heads * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        q, k, v = (part.reshape(batch, tokens, self.heads, -1).transpose(1, 2) for part in self.inward(x).chunk(3, -1))
        seen = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        found: torch.Tensor = self.outward(seen.transpose(1, 2).reshape(x.shape))
        return found


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--tokens", type=int, nargs="+", default=[197, 577, 1024, 2048], help="lengths of the sequence (default: 197 577 1024 2048)")
    options.add_argument("--heads", type=int, default=12, help="heads (default: %(default)s)")
    options.add_argument("--width", type=int, default=64, help="numbers of each head (default: %(default)s)")
    options.add_argument("--turns", type=int, default=9, help="turns of the comparison (default: %(default)s)")
    add_target(options)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    use_threads(given.threads)
    torch.manual_seed(0)
    target = str(target_of(given))
    columns = ["causal", "blocks", "in blocks", "whole / blocks", "eager / blocks", "memory", "error"]
    shown, errors = table(f"{target}, {given.heads} heads of {given.width}", ["tokens"], columns), []
    for tokens in given.tokens:
        for causal in (False, True):
            model, x = Layer(given.heads, given.width, causal).eval(), torch.randn(1, tokens, given.heads * given.width)
            blocks = _compiled(model, x, target)
            with patch.object(attention, "KEPT_BYTES", sys.maxsize):  # all scores are small enough
                whole = _compiled(model, x, target)
            with torch.no_grad():
                wanted = model(x)
                errors.append(relative_error(blocks(x), wanted))
                calls = {"blocks": partial(blocks, x), "whole": partial(whole, x), "eager": partial(model, x)}
                times = interleaved(calls, given.turns, warm=0.05)
            count = sum(len(one.blocks(given.threads)) for one in attention.attentions(extract(model, x).graph))
            ratios = [str(ratio(times["blocks"], times[name])) for name in ("whole", "eager")]
            memory = f"{format_bytes(whole.arena_bytes)}, {format_bytes(blocks.arena_bytes)}"
            shown.add_row(str(tokens), "yes" if causal else "no", str(count), short(times["blocks"].median), *ratios, memory, f"{errors[-1]:.0e}")
    out = console()
    out.print(shown)
    out.print(machine_line())
    return int(not all(one <= TOLERANCE for one in errors))


def _compiled(model: nn.Module, x: torch.Tensor, target: str) -> CompiledNetwork:
    return ansor.compile(model, x, target, progress=False, library=False)


if __name__ == "__main__":
    sys.exit(main())
