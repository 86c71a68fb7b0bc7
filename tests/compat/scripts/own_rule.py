"""A custom sketch rule written for TVM: it splits the last axis of a sum in two, and leaves the rest to the search."""
# mypy: ignore-errors

import tvm
from tvm import auto_scheduler, te


@auto_scheduler.register_workload
def row_sums(n, m):
    x = te.placeholder((n, m), name="x")
    k = te.reduce_axis((0, m), name="k")
    return [x, te.compute((n,), lambda i: te.sum(x[i][k] + 1.0, axis=k), name="y")]


asked = []


def meets(search_policy, state, stage_id):
    state = auto_scheduler.loop_state.State(state, search_policy.search_task.compute_dag)
    asked.append(state.stages[stage_id].op.name)
    if state.stages[stage_id].op.name == "y":
        return auto_scheduler.PreloadCustomSketchRule.APPLY_AND_SKIP_REST
    return auto_scheduler.PreloadCustomSketchRule.PASS


def applies(search_policy, state, stage_id):
    state = auto_scheduler.loop_state.State(state, search_policy.search_task.compute_dag)
    y = state.stage_ops[stage_id]
    state.split(y, state[y].iters[1], [8])
    return [[state.state_object, stage_id - 1]]


task = tvm.auto_scheduler.SearchTask(func=row_sums, args=(16, 32), target=tvm.target.Target("llvm"))
rule = auto_scheduler.PreloadCustomSketchRule(meets, applies)
policy = auto_scheduler.SketchPolicy(task, auto_scheduler.XGBModel(), init_search_callbacks=[rule], verbose=0)
assert isinstance(policy, auto_scheduler.search_policy.SearchPolicy)
(sketch,) = policy.generate_sketches()
assert len(sketch.transform_steps) == 1 and "y" in asked
assert auto_scheduler._ffi_api.SearchPolicyUtilsIsTiled(sketch.stages[1])
assert not auto_scheduler._ffi_api.SearchPolicyUtilsHasCacheWriteStage(sketch, 1)
print("tasks:", auto_scheduler._ffi_api.DeserializeSearchTask(auto_scheduler._ffi_api.SerializeSearchTask(task)).workload_key)
