"""Lists our counterparts of AutoTVM's unit tests. Source: TVM 0.9, tests/python/unittest/test_autotvm_*.py."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from ansor.compat.autotvm.graph_tuner import DPTuner, PBQPTuner
from ansor.errors import TargetError

ONE_LAYOUT = "layouts are no choice of single operators: ansor.compile decides on one for a network, and operands are packed by the kernels that read them"
NO_GRAPH = f"of the graph tuners' own graph, which there is none of: {ONE_LAYOUT}"
NO_FORK = "tuners compute features in their own process, so how others are started does not matter"

OURS = {
    "database::test_save_load": "test_database.py::test_save_and_load",
    "database::test_db_hash": "test_database.py::test_the_code_hash_distinguishes_templates",
    "database::test_db_latest_all": "test_database.py::test_the_latest_and_all",
    "database::test_db_filter": "test_database.py::test_filter test_database.py::test_inputs_left_to_measure",
    "dispatch_context::test_fallback": "../templates/test_template.py::test_outside_of_all_contexts_a_template_gets_a_fallback",
    "feature::test_iter_feature_gemm": "test_feature.py::test_itervar_of_gemm",
    "feature::test_curve_feature_gemm": "test_feature.py::test_curve_of_gemm_has_720_numbers",
    "feature::test_feature_shape": "test_feature.py::test_loop_order_does_not_change_the_feature_count",
    "flop_calculator::test_conv": "../templates/test_task.py::test_operations",
    "flop_calculator::test_pack_gemm": "../templates/test_task.py::test_operations",
    "flop_calculator::test_outer_dot": "../templates/test_task.py::test_operations",
    "flop_calculator::test_max_pool": "../templates/test_task.py::test_operations",
    "flop_calculator::test_average_pool": "../templates/test_task.py::test_operations",
    "flop_calculator::test_move": "../templates/test_task.py::test_moving_data_has_no_operations",
    "index_tuner::test_gridsearch_tuner": "test_tuners.py::test_ranges_include_their_last_index test_tuners.py::test_grid_search_is_in_order",
    "index_tuner::test_grid_search_tuner_spawn": "test_tuners.py::test_ranges_include_their_last_index",
    "index_tuner::test_random_tuner": "test_tuners.py::test_random_visits_each_once",
    "measure::test_task_tuner_without_measurement": "test_tune.py::test_every_tuner_tunes_without_measuring",
    "measure::test_task_tuner_without_measurement_spawn": "test_xgboost_tuner.py::test_the_same_seed_gives_the_same_configurations_in_any_process",
    "measure::test_task_runner_with_ref_input": "test_measure.py::test_reference_inputs_reach_the_program",
    "record::test_load_dump":
        "test_log_line.py::test_records_read_back test_log_line.py::test_a_record_without_knobs_is_fine "
        "test_pickled_line.py::test_lines_read_back_and_name_tvms_classes",
    "record::test_file_io": "test_record.py::test_files test_recorded_dispatch.py::test_files_and_iterators",
    "record::test_apply_history_best": "test_recorded_dispatch.py::test_the_least_mean_cost_is_best test_recorded_dispatch.py::test_files_and_iterators",
    "space::test_split":
        "../templates/test_split.py::test_counts "
        "../templates/test_split.py::test_many_loops_of_a_long_axis "
        "../templates/test_space.py::test_fallback_splits",
    "xgboost_model::test_fit": "test_xgboost_cost_model.py::test_a_log_of_another_shape_helps test_xgboost_cost_model.py::test_features_of_other_lengths",
    "xgboost_model::test_tuner": "test_xgboost_tuner.py::test_impossible_ones_come_last test_model_based_tuner.py::test_history",
    "xgboost_model::test_update": "test_model_based_tuner.py::test_results_from_elsewhere_count",
}
"""Their test -> ours, one or several."""

NONE = {
    "graph_tuner_core::test_graph_tuner_layout_transform": ONE_LAYOUT,
    "graph_tuner_core::test_graph_tuner_layout_transform_runner": ONE_LAYOUT,
    "graph_tuner_core::test_DPTuner_run": ONE_LAYOUT,
    "graph_tuner_core::test_PBQPTuner_run": ONE_LAYOUT,
    "graph_tuner_core::test_many_sub_graphs": ONE_LAYOUT,
    "graph_tuner_core::test_tuple": ONE_LAYOUT,
    "graph_tuner_core::test_triangle_block": ONE_LAYOUT,
    "graph_tuner_utils::test_has_multiple_inputs": NO_GRAPH,
    "graph_tuner_utils::test_expr2graph": NO_GRAPH,
    "graph_tuner_utils::test_get_direct_ancestor": NO_GRAPH,
    "graph_tuner_utils::test_get_in_nodes": NO_GRAPH,
    "graph_tuner_utils::test_get_out_nodes": NO_GRAPH,
    "graph_tuner_utils::test_target_device_replacement": NO_GRAPH,
    "xgboost_model::test_fit_spawn": NO_FORK,
}
"""Their test -> why it has no counterpart here."""

THEIRS = {"database": 4, "dispatch_context": 1, "feature": 3, "flop_calculator": 6, "graph_tuner_core": 7, "graph_tuner_utils": 6, "index_tuner": 3,
          "measure": 3, "record": 3, "space": 1, "xgboost_model": 4}  # fmt: skip
"""The number of tests in each of their files."""


def test_every_autotvm_test_is_listed() -> None:
    assert not OURS.keys() & NONE.keys() and len(OURS) + len(NONE) == 41
    assert Counter(name.partition("::")[0] for name in (*OURS, *NONE)) == THEIRS and all(NONE.values())


@pytest.mark.parametrize("ours", sorted({one for several in OURS.values() for one in several.split()}))
def test_our_counterparts_exist(ours: str) -> None:
    file, _, name = ours.partition("::")
    tree = ast.parse((Path(__file__).parent / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("kind", [DPTuner, PBQPTuner])
def test_graph_tuners_say_what_to_use(kind: type[DPTuner]) -> None:
    with pytest.raises(TargetError, match=f"asked for {kind.__name__}, .* use ansor.compile"):
        kind("graph", {}, [])
