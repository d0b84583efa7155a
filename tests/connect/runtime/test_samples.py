"""Averages and rates of what was measured lately."""

import pytest

from broker.clock import ManualClock
from connect.runtime.samples import WINDOW_MS, Samples


def test_nothing_measured_is_zero() -> None:
    samples = Samples(ManualClock())
    shown = (samples.average, samples.largest, samples.smallest, samples.per_second)
    assert shown == (0.0, 0.0, 0.0, 0.0)


def test_average_largest_and_smallest_are_over_all_measurements() -> None:
    samples = Samples(ManualClock())
    for value in (4, 2, 9):
        samples.add(value)
    assert (samples.average, samples.largest, samples.smallest) == (5, 9, 2)


def test_a_measurement_is_forgotten_after_two_windows() -> None:
    clock = ManualClock()
    samples = Samples(clock)
    samples.add(100)
    clock.advance(WINDOW_MS)
    samples.add(2)
    assert (samples.average, samples.largest) == (51, 100)
    clock.advance(WINDOW_MS)
    samples.add(4)
    assert (samples.average, samples.largest) == (3, 4)
    clock.advance(2 * WINDOW_MS)
    assert samples.largest == 0


def test_a_rate_is_over_at_least_one_window() -> None:
    clock = ManualClock()
    samples = Samples(clock)
    samples.add(60)
    assert samples.per_second == pytest.approx(2)
    clock.advance(WINDOW_MS + WINDOW_MS // 2)
    samples.add(30)
    assert samples.per_second == pytest.approx(2)
