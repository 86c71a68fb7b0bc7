"""The machine's limits are measured, not guessed."""

import pytest

from ansor.measure.peak import measure_peak


@pytest.mark.compiler
def test_peaks_are_positive_numbers() -> None:
    peak = measure_peak(vector_bytes=16, threads=1)
    assert peak.threads == 1
    assert peak.gflops > 0
    assert peak.gbytes > 0
