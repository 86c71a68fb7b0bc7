import gc

import pytest

from ansor.support.garbage import uncollected


@pytest.mark.parametrize("before", [True, False])
def test_collecting_is_afterwards_as_it_was(before: bool) -> None:
    was = gc.isenabled()
    (gc.enable if before else gc.disable)()
    try:
        with pytest.raises(KeyError), uncollected():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == before
    finally:
        (gc.enable if was else gc.disable)()
