"""All steps of a schedule, by what they change. Importing this module registers them for `step_from_json`.

    loop_steps     Split, SplitOuter, FollowSplit, Fuse, Reorder
    place_steps    ComputeAt, ComputeInline, ComputeRoot
    stage_steps    CacheWrite, CacheRead, Rfactor
    run_steps      Parallel, Vectorize, Tensorize, Unroll, PragmaUnroll, StorageAlign
    memory_steps   SetScope, Buffered
    pack_steps     Pack, PackInside
"""

from __future__ import annotations

from ansor.schedule.loop_steps import FollowSplit, Fuse, Reorder, Split, SplitOuter
from ansor.schedule.memory_steps import Buffered, SetScope
from ansor.schedule.pack_steps import Pack, PackInside, packable, packable_inside
from ansor.schedule.place_steps import ComputeAt, ComputeInline, ComputeRoot
from ansor.schedule.run_steps import Parallel, PragmaUnroll, StorageAlign, Tensorize, Unroll, Vectorize
from ansor.schedule.stage_steps import CacheRead, CacheWrite, Rfactor
from ansor.schedule.step import STEPS, Json, Step, register, step_from_json

__all__ = [
    "STEPS", "Buffered", "CacheRead", "CacheWrite", "ComputeAt", "ComputeInline", "ComputeRoot", "FollowSplit", "Fuse", "Json", "Pack", "PackInside",
    "Parallel", "PragmaUnroll", "Reorder", "Rfactor", "SetScope", "Split", "SplitOuter", "Step", "StorageAlign", "Tensorize", "Unroll", "Vectorize", "packable",
    "packable_inside", "register", "step_from_json",
]  # fmt: skip
