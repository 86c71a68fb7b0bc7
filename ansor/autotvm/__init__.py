"""AutoTVM's knobs, spaces, log lines and tuners, under the names its users know."""

from ansor.autotvm.config import Config as Config
from ansor.autotvm.entities import AnnotateEntity as AnnotateEntity
from ansor.autotvm.entities import OtherOptionEntity as OtherOptionEntity
from ansor.autotvm.entities import ReorderEntity as ReorderEntity
from ansor.autotvm.entities import SplitEntity as SplitEntity
from ansor.autotvm.knob import Axis as Axis
from ansor.autotvm.knob import VirtualAxis as VirtualAxis
from ansor.autotvm.mixed_radix import knob2point as knob2point
from ansor.autotvm.mixed_radix import point2knob as point2knob
from ansor.autotvm.space import ConfigEntity as ConfigEntity
from ansor.autotvm.space import ConfigSpace as ConfigSpace
from ansor.autotvm.space import FallbackConfigEntity as FallbackConfigEntity
from ansor.errors import InstantiationError as InstantiationError
