"""Two runs on one machine take turns."""

import threading

from ansor.measure.turns import turn


def test_who_comes_second_waits_for_the_first() -> None:
    order: list[str] = []
    started = threading.Event()

    def second() -> None:
        started.set()
        with turn():
            order.append("second")

    with turn():
        other = threading.Thread(target=second)
        other.start()
        started.wait()
        other.join(timeout=0.2)
        order.append("first")
    other.join(timeout=10)
    assert order == ["first", "second"]
