"""Simulated threads: they take turns, wait for each other, and end when their process is killed."""

import threading
from concurrent.futures import Future, wait
from functools import partial

import pytest

from broker import concurrency, garbage
from broker.clock import Clock
from millstream.simulation import Simulation
from millstream.simulation.clock import VirtualClock


def test_threads_wait_in_virtual_time() -> None:
    with Simulation(seed=1) as simulation:
        process = simulation.process("one")
        clock: Clock = VirtualClock(simulation.scheduler)
        seen: list[tuple[str, int]] = []
        changed = concurrency.Condition()

        def sleeper() -> None:
            with changed:
                assert not clock.wait(changed, 5_000)
                seen.append(("slept", clock.monotonic_ms()))
                changed.notify_all()

        def waiter() -> None:
            with changed:
                assert changed.wait(3_600)
                seen.append(("woken", clock.monotonic_ms()))

        def main() -> None:
            threads = [concurrency.Thread(target=each) for each in (sleeper, waiter)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seen.append(("joined", clock.monotonic_ms()))

        simulation.start(process, "main", main)
        simulation.run(for_ms=10_000)
        assert seen == [("slept", 5_000), ("woken", 5_000), ("joined", 5_000)]
        assert simulation.scheduler.now_us >= 5_000_000


def shared_counter(seed: int) -> list[int]:
    """What two threads see that add to a number without a lock in between."""
    with Simulation(seed) as simulation:
        process = simulation.process("one")
        lock = concurrency.Lock()
        total = 0
        seen: list[int] = []

        def adding() -> None:
            nonlocal total
            for _ in range(20):
                with lock:
                    before = total
                with lock:
                    total = before + 1
                seen.append(total)

        for name in ("a", "b"):
            simulation.start(process, name, adding)
        simulation.run(for_ms=1)
        return seen


def test_a_seed_is_an_order_of_events() -> None:
    runs = [shared_counter(seed) for seed in range(30)]
    assert runs == [shared_counter(seed) for seed in range(30)]
    assert len({tuple(run) for run in runs}) >= 10
    # The race that this program has is found.
    assert any(max(run) < 40 for run in runs)


def test_the_threads_of_a_killed_process_never_go_on() -> None:
    with Simulation(seed=1) as simulation:
        process, other = simulation.process("one"), simulation.process("two")
        seen: list[str] = []

        def tick(name: str) -> None:
            event = concurrency.Event()
            try:
                while True:
                    event.wait(1)
                    seen.append(name)
            except Exception:
                seen.append("cleaned up")

        simulation.start(process, "ticks", lambda: tick("one"))
        simulation.start(other, "ticks", lambda: tick("two"))
        simulation.run(for_ms=3_500)
        simulation.kill(process)
        simulation.run(for_ms=3_000)
        assert (seen.count("one"), seen.count("two")) == (3, 6)
        assert "cleaned up" not in seen


def test_futures_pools_and_queues_work_in_a_simulation() -> None:
    with Simulation(seed=1) as simulation:
        process = simulation.process("one")
        results: list[object] = []

        def main() -> None:
            future: Future[str] = Future()
            queue: concurrency.SimpleQueue[str] = concurrency.SimpleQueue()
            pool = concurrency.ThreadPoolExecutor(2)
            concurrency.Thread(target=lambda: future.set_result(queue.get())).start()
            queue.put("x")
            results.append(future.result(10))
            results.extend(pool.map(lambda number: number * 2, [1, 2, 3]))
            late: Future[str] = Future()
            results.append(len(wait([late], timeout=5).not_done))
            with pytest.raises(TimeoutError):
                late.result(1)
            pool.shutdown()
            results.append("end")

        simulation.start(process, "main", main)
        simulation.run(for_ms=60_000)
        assert results == ["x", 2, 4, 6, 1, "end"]
        assert not simulation.scheduler.crashed


def test_other_threads_of_the_machine_keep_their_own_locks() -> None:
    kinds: list[object] = []
    with Simulation(seed=1):
        real = threading.Thread(target=lambda: kinds.append(type(concurrency.Lock())))
        real.start()
        real.join()
    assert kinds == [type(threading.Lock())]
    assert isinstance(concurrency.Condition(), threading.Condition)


def test_what_is_left_of_a_simulation_does_not_touch_the_collector_of_this_process() -> None:
    with Simulation(seed=1):
        rounds_ended = garbage.rounds_began()
    before = garbage._threads
    rounds_ended()  # as a generator does that is collected when the simulation is over
    assert garbage._threads == before


def test_a_frozen_process_goes_on_late_and_others_do_not_wait_for_it() -> None:
    with Simulation(seed=1) as simulation:
        scheduler = simulation.scheduler
        seen: list[tuple[str, int]] = []

        def sleeping(name: str) -> None:
            for _ in range(2):
                scheduler.sleep(1_000_000)
                seen.append((name, scheduler.now_us // 1_000_000))

        frozen, other = simulation.process("frozen"), simulation.process("other")
        for process in (frozen, other):
            simulation.start(process, "main", partial(sleeping, process.name))
        scheduler.freeze(frozen)
        simulation.run(for_ms=10_000)
        assert seen == [("other", 1), ("other", 2)]
        scheduler.thaw(frozen)
        simulation.run(for_ms=10_000)
        assert seen[2:] == [("frozen", 11), ("frozen", 12)]


def test_a_frozen_process_can_be_killed() -> None:
    with Simulation(seed=1) as simulation:
        scheduler = simulation.scheduler
        process = simulation.process("frozen")
        simulation.start(process, "main", lambda: pytest.fail("it runs"))
        scheduler.freeze(process)
        simulation.run(for_ms=1_000)
        scheduler.kill(process)
        scheduler.thaw(process)
        simulation.run(for_ms=1_000)
        assert not scheduler.crashed
