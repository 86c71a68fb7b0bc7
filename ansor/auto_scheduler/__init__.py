"""Log records of TVM's auto-scheduler, under the names its users know."""

from ansor.auto_scheduler.log_line import dump_record_to_string as dump_record_to_string
from ansor.auto_scheduler.log_line import load_record_from_string as load_record_from_string
from ansor.auto_scheduler.measured import HardwareParams as HardwareParams
from ansor.auto_scheduler.measured import LayoutRewriteOption as LayoutRewriteOption
from ansor.auto_scheduler.measured import MeasureInput as MeasureInput
from ansor.auto_scheduler.measured import MeasureResult as MeasureResult
from ansor.auto_scheduler.measured import RecordedState as RecordedState
from ansor.auto_scheduler.measured import RecordedTask as RecordedTask
from ansor.auto_scheduler.record import RecordReader as RecordReader
from ansor.auto_scheduler.record import distill_record_file as distill_record_file
from ansor.auto_scheduler.record import load_best_record as load_best_record
from ansor.auto_scheduler.record import load_records as load_records
from ansor.auto_scheduler.record import save_records as save_records
from ansor.auto_scheduler.workload_key import calc_workload_dis_factor as calc_workload_dis_factor
from ansor.auto_scheduler.workload_key import decode_workload_key as decode_workload_key
from ansor.outcome import MeasureErrorNo as MeasureErrorNo
