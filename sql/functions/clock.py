"""What functions take for now: the system's clock, unless an engine sets another one."""

from broker.clock import Clock, SystemClock

_clock: Clock = SystemClock()


def now_ms() -> int:
    """Milliseconds since 1970."""
    return _clock.now_ms()


def use_clock(clock: Clock) -> Clock:
    """Take the time from another clock from now on; returns the one before."""
    global _clock
    before, _clock = _clock, clock
    return before
