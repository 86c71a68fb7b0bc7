"""All tuners, under AutoTVM's module name: `ansor.autotvm.tuner`."""

from ansor.compat.autotvm import callback as callback
from ansor.compat.autotvm.base_tuner import Tuner as Tuner
from ansor.compat.autotvm.ga_tuner import GATuner as GATuner
from ansor.compat.autotvm.index_tuners import GridSearchTuner as GridSearchTuner
from ansor.compat.autotvm.index_tuners import RandomTuner as RandomTuner
from ansor.compat.autotvm.model_based_tuner import ModelBasedTuner as ModelBasedTuner
from ansor.compat.autotvm.xgboost_tuner import XGBTuner as XGBTuner
