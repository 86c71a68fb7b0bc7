"""Linear algebra on one thread."""

from threadpoolctl import ThreadpoolController

from ansor.support.blas import one_blas_thread


def _threads() -> list[int]:
    """Of NumPy's library; others may have brought their own."""
    return [one["num_threads"] for one in ThreadpoolController().select(user_api="blas").info() if "numpy" in one["filepath"]]


def test_one_thread_while_it_is_open_and_as_many_as_before_afterwards() -> None:
    before = _threads()
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        asked = _threads()
        with one_blas_thread():
            assert set(_threads()) == {1}
        assert _threads() == asked
    assert _threads() == before
