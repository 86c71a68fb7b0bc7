"""The 67 tests of TVM 0.9's auto-scheduler (tests/python/unittest/test_auto_scheduler_*.py), each with our counterpart or the reason why there is none.

Counterparts outside of this folder use `ansor.auto_scheduler`; `ansor.compat.tvm.auto_scheduler` has the same objects (`test_names_of_the_auto_scheduler`).
"""

_GPU = "there is no GPU: only CPUs are supported"
_SPAWN = "tests/compat/test_tvm_auto_scheduler.py::test_spawned_processes"
_STATES, _DAG = "tests/auto_scheduler/test_loop_state.py", "tests/auto_scheduler/test_compute_dag.py"
_HERE, _FEATURES = "tests/compat/test_tvm_auto_scheduler.py", "tests/cost_model/test_features.py"
_PACKING, _SEARCH = "tests/compat/common/test_program.py", "tests/auto_scheduler/test_search_policy.py"
_TASK, _SKETCHES = "tests/auto_scheduler/test_search_task.py", "tests/rules/test_reference_sketches.py"
_SCHEDULER, _MEASURE = "tests/auto_scheduler/test_task_scheduler.py", "tests/auto_scheduler/test_measuring.py"

TESTS: dict[str, dict[str, str]] = {
    "compute_dag": {
        "test_apply_steps": f"{_DAG}::test_apply_steps",
        "test_infer_bound": f"{_DAG}::test_infer_bound",
        "test_estimate_flop": f"{_DAG}::test_estimate_flop",
        "test_stage_order": f"{_DAG}::test_stage_order",
        "test_invalid_compute_dag": f"{_DAG}::test_invalid_compute_dag",
    },
    "cost_model": {
        "test_random_model": "tests/auto_scheduler/test_cost_models.py::test_random_model",
        "test_xgb_model": "tests/auto_scheduler/test_cost_models.py::test_xgb_model",
    },
    "evolutionary_search": {
        "test_mutate_tile_size": f"{_SEARCH}::test_mutate_tile_size",
        "test_mutate_parallel": "TVM skips it; how many loops run in parallel is a choice of its own here, mutated as the others are",
    },
    "feature": {
        "test_cpu_matmul": f"{_FEATURES}::test_known_values_of_a_scheduled_matmul",
        "test_cpu_fusion": f"{_FEATURES}::test_known_values_of_a_fused_pair",
        "test_gpu_feature": _GPU,
        "test_primfunc_without_lowering": f"{_HERE}::test_features_of_products_as_declared_and_scheduled",
        "test_primfunc_lowered": f"{_HERE}::test_features_of_products_as_declared_and_scheduled",
        "test_dense_lowered": f"{_HERE}::test_features_of_products_as_declared_and_scheduled",
    },
    "layout_rewrite": {
        "test_apply_steps_with_layout_rewrite": f"{_PACKING}::test_operands_with_a_free_layout_are_packed",
        "test_apply_steps_with_layout_rewrite_corner_case": f"{_PACKING}::test_corner_cases_of_packing",
        "test_correctness_layout_rewrite_rewrite_for_preTransformed": f"{_HERE}::test_correctness_layout_rewrite",
        "test_correctness_layout_rewrite_insert_transform_stage": f"{_HERE}::test_correctness_layout_rewrite",
    },
    "loop_state": {
        "test_split_fuse_reorder_annotation": f"{_STATES}::test_split_fuse_reorder_annotation",
        "test_compute_at_root_inline": f"{_STATES}::test_compute_at_root_inline",
        "test_cache_read_write": f"{_STATES}::test_cache_read_write",
        "test_follow_split_follow_fused_split": f"{_STATES}::test_follow_split_follow_fused_split",
        "test_rfactor": f"{_STATES}::test_rfactor",
    },
    "measure": {
        "test_record_split_reorder_fuse_annotation": f"{_HERE}::test_record_split_reorder_fuse_annotation",
        "test_record_compute_at_root_inline_cache_read_write": f"{_HERE}::test_record_compute_at_root_inline_cache_read_write",
        "test_record_follow_split_follow_fused_split": f"{_HERE}::test_record_follow_split_follow_fused_split",
        "test_record_pragma_storage_align_rfactor": f"{_HERE}::test_record_pragma_storage_align_rfactor",
        "test_recover_measure_input": f"{_TASK}::test_recover_measure_input",
        "test_workload_dis_factor": "tests/auto_scheduler/test_workload_key.py::test_distances_of_workloads",
        "test_measure_local_builder_runner": f"{_MEASURE}::test_measure_local_builder_runner",
        "test_dag_measure_local_builder_runner": f"{_MEASURE}::test_errors_are_results",
        "test_workload_serialization": "tests/auto_scheduler/test_workload_registry.py::test_entries_round_trip",
        "test_measure_local_builder_rpc_runner": f"{_HERE}::test_measure_local_builder_rpc_runner",
        "test_measure_local_builder_rpc_runner_spawn": _SPAWN,
        "test_measure_target_host": f"{_HERE}::test_measure_target_host",
        "test_measure_special_inputs_map_by_name_local_runner": f"{_MEASURE}::test_special_inputs_are_found_by_name",
        "test_measure_special_inputs_map_by_name_rpc_runner": "a LocalRPCMeasureContext's runner is a LocalRunner, of which the test before is",
    },
    "search_policy": {
        "test_workload_registry_empty_policy": f"{_HERE}::test_workload_registry_empty_policy",
        "test_sketch_search_policy_basic": "tests/auto_scheduler/test_tune.py::test_with_a_compiler_and_a_clock",
        "test_sketch_search_policy_basic_spawn": _SPAWN,
        "test_sketch_search_policy_xgbmodel": "tests/compat/test_scripts.py::test_searching",
        "test_sketch_search_policy_cuda_rpc_runner": _GPU,
        "test_sketch_search_policy_cuda_xgbmodel_rpc_runner": _GPU,
        "test_sketch_search_policy_zero_rank": f"{_HERE}::test_sketch_search_policy_zero_rank",
        "test_sketch_search_policy_custom_sketch": f"{_SEARCH}::test_custom_sketch_rule",
    },
    "search_task": {
        "test_search_task_add_task_input": f"{_TASK}::test_search_task_add_task_input",
        "test_search_task_record": f"{_TASK}::test_search_task_record",
        "test_recover_measure_input_with_task_input": f"{_TASK}::test_recover_measure_input_with_task_input",
    },
    "sketch_generation": {
        "test_cpu_matmul_sketch": f"{_SKETCHES}::test_matmul",
        "test_cpu_conv2d_bn_relu_sketch": f"{_SKETCHES}::test_convolution_with_batch_norm_and_relu",
        "test_cpu_max_pool2d_sketch": f"{_SKETCHES}::test_max_pooling",
        "test_cpu_min_sketch": f"{_SKETCHES}::test_row_minimum",
        "test_cpu_softmax_sketch": f"{_SKETCHES}::test_softmax",
        "test_cpu_conv2d_winograd_sketch": f"{_SKETCHES}::test_winograd",
        "test_cpu_zero_rank_sketch": f"{_SKETCHES}::test_sum_to_rank_zero",
        "test_cpu_custom_sketch": f"{_SEARCH}::test_custom_sketch_rule",
        "test_cuda_matmul_sketch": _GPU,
        "test_cuda_conv2d_bn_relu_sketch": _GPU,
        "test_cuda_max_pool2d_sketch": _GPU,
        "test_cuda_min_sketch": _GPU,
        "test_cuda_softmax_sketch": _GPU,
        "test_cuda_conv2d_winograd_sketch": _GPU,
        "test_cuda_zero_rank_sketch": _GPU,
    },
    "task_scheduler": {
        "test_task_scheduler_round_robin": f"{_SCHEDULER}::test_task_scheduler_round_robin",
        "test_task_scheduler_round_robin_spawn": _SPAWN,
        "test_task_scheduler_gradient": f"{_SCHEDULER}::test_task_scheduler_gradient",
    },
}  # fmt: skip
"""File in TVM -> its test -> our `file::test`, or a reason."""
