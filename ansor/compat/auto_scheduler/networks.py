"""Extracts the tasks of a network, under TVM's name. Source: TVM 0.9, `auto_scheduler.relay_integration`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansor import api
from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.measured import LayoutRewriteOption
from ansor.compat.auto_scheduler.search_task import SearchTask
from ansor.compat.common.hardware import HardwareParams

if TYPE_CHECKING:
    from ansor.graph.export import ExampleInputs


def extract_tasks(
    model: object, example_inputs: ExampleInputs, target: str = "llvm", target_host: str | None = None, hardware_params: HardwareParams | None = None
) -> tuple[list[SearchTask], list[int]]:
    """The tuning tasks of a PyTorch module, and the number of uses of each in the network. Groups without a reduction are left out.

    Raises ModelError if the module cannot be exported.
    """
    found, weights = api.extract_tasks(model, example_inputs)
    return [
        SearchTask(
            compute_dag=ComputeDAG(task.tensors), target=target, target_host=target_host, hardware_params=hardware_params, desc=task.name,
            layout_rewrite_option=LayoutRewriteOption.get_target_default(target, in_relay_integration=True),
        )
        for task in found
    ], weights  # fmt: skip
