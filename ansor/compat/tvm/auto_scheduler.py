"""`tvm.auto_scheduler`: ours, with the names of its modules."""

from ansor.auto_scheduler import *  # noqa: F403  # all of its names
from ansor.auto_scheduler import compute_dag as compute_dag
from ansor.auto_scheduler import cost_models, measuring, record
from ansor.auto_scheduler import dispatcher as dispatcher
from ansor.auto_scheduler import loop_state as loop_state
from ansor.auto_scheduler import search_policy as search_policy
from ansor.auto_scheduler import search_task as search_task
from ansor.auto_scheduler import task_scheduler as task_scheduler
from ansor.auto_scheduler import workload_registry as workload_registry
from ansor.compat.tvm.missing import of_auto_scheduler as __getattr__  # noqa: F401  # what is not here raises

cost_model = cost_models
measure = measuring
measure_record = record
