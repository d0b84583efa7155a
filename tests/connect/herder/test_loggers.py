"""Levels of loggers by Java's names."""

import logging

import pytest

from broker.clock import ManualClock
from connect.errors import BadRequest, NotFound
from connect.herder.loggers import LoggerLevel, Loggers

NOW_MS = 1_700_000_000_000


def test_a_level_holds_for_all_below() -> None:
    loggers = Loggers(ManualClock(NOW_MS))
    assert loggers.set_level("herded.a.b", "debug") == ["herded.a.b"]
    assert loggers.set_level("herded.a.b", "DEBUG") == []
    assert loggers.set_level("herded.ab", "INFO") == ["herded.ab"]
    assert loggers.set_level("herded.a", "TRACE") == ["herded.a", "herded.a.b"]
    assert loggers.level("herded.a.b") == LoggerLevel("TRACE", NOW_MS)
    assert loggers.level("herded.ab") == LoggerLevel("INFO", NOW_MS)
    assert not logging.getLogger("herded.a.b").isEnabledFor(1)


@pytest.mark.parametrize(
    ("level", "number"), [("OFF", 100), ("FATAL", 50), ("WARN", 30), ("TRACE", 5), ("ALL", 1)]
)
def test_java_has_more_levels(level: str, number: int) -> None:
    loggers = Loggers(ManualClock(NOW_MS))
    loggers.set_level("herded.levels", level)
    assert logging.getLogger("herded.levels").level == number
    assert loggers.levels()["herded.levels"].level == level


def test_an_invalid_level_or_logger_is_refused() -> None:
    loggers = Loggers(ManualClock(NOW_MS))
    with pytest.raises(BadRequest, match="'level' parameter was not specified"):
        loggers.set_level("herded.x", None)
    with pytest.raises(NotFound, match="invalid log level 'WARNING'"):
        loggers.set_level("herded.x", "WARNING")
    with pytest.raises(NotFound, match=r"Logger herded\.never not found"):
        loggers.level("herded.never")
    assert loggers.level("root").last_modified_ms is None
