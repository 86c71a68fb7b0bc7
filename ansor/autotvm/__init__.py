"""AutoTVM's knobs, spaces, log lines and tuners, under the names its users know."""

from ansor.autotvm.config import Config as Config
from ansor.autotvm.entities import AnnotateEntity as AnnotateEntity
from ansor.autotvm.entities import OtherOptionEntity as OtherOptionEntity
from ansor.autotvm.entities import ReorderEntity as ReorderEntity
from ansor.autotvm.entities import SplitEntity as SplitEntity
from ansor.autotvm.ga_tuner import GATuner as GATuner
from ansor.autotvm.index_tuners import GridSearchTuner as GridSearchTuner
from ansor.autotvm.index_tuners import RandomTuner as RandomTuner
from ansor.autotvm.knob import Axis as Axis
from ansor.autotvm.knob import VirtualAxis as VirtualAxis
from ansor.autotvm.log_line import decode as decode
from ansor.autotvm.log_line import encode as encode
from ansor.autotvm.measured import MeasureInput as MeasureInput
from ansor.autotvm.measured import MeasureResult as MeasureResult
from ansor.autotvm.measured import Task as Task
from ansor.autotvm.mixed_radix import knob2point as knob2point
from ansor.autotvm.mixed_radix import point2knob as point2knob
from ansor.autotvm.record import load_from_buffer as load_from_buffer
from ansor.autotvm.record import load_from_file as load_from_file
from ansor.autotvm.space import ConfigEntity as ConfigEntity
from ansor.autotvm.space import ConfigSpace as ConfigSpace
from ansor.autotvm.space import FallbackConfigEntity as FallbackConfigEntity
from ansor.errors import InstantiationError as InstantiationError
from ansor.outcome import MeasureErrorNo as MeasureErrorNo
