"""Retention: which segments go, and what stays."""

from pathlib import Path

import pytest

from broker.storage.retention import RetentionStep, apply_retention, expired_segments
from tests.broker.storage.compaction_support import Cleaned

SETTINGS: dict[str, object] = {
    "cleanup_policy": ("delete",), "retention_ms": -1, "retention_bytes": -1
}  # fmt: skip


def log_of(folder: Path, segments: int, **settings: object) -> Cleaned:
    """A log of segments with one record each, one second apart, the last one empty."""
    log = Cleaned(folder / "log", settings=SETTINGS | settings)
    for number in range(segments):
        log.append((b"key", b"%d" % number))
        log.log.roll()
        log.clock.advance(1000)
    return log


def apply(log: Cleaned) -> list[int]:
    """Apply retention; the base offsets of what is left."""
    while (step := apply_retention(log.log, log.clock.now_ms())) is not RetentionStep.DONE:
        if step is RetentionStep.FLUSH:
            log.log.flush()
        elif step is RetentionStep.CHECKPOINT:
            log.log.checkpointed_offset = log.log.recovery_point
    return [segment.base_offset for segment in log.log.segments]


def test_nothing_goes_without_a_limit(tmp_path: Path) -> None:
    log = log_of(tmp_path, 3)
    log.clock.advance(10**12)
    assert apply(log) == [0, 1, 2, 3]


def test_segments_older_than_the_limit_go(tmp_path: Path) -> None:
    log = log_of(tmp_path, 5, retention_ms=3000)
    assert apply(log) == [2, 3, 4, 5]
    assert log.log.start_offset == 2
    log.clock.advance(1)
    assert apply(log) == [3, 4, 5]


def test_a_young_segment_keeps_all_after_it(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log", settings=SETTINGS | {"retention_ms": 1000})
    young, old = log.clock.now_ms() + 50_000, log.clock.now_ms()
    for timestamp_ms in (old, young, old):
        log.append((b"a", b"1"), timestamp_ms=timestamp_ms)
        log.log.roll()
    log.clock.advance(2000)
    assert apply(log) == [1, 2, 3]


def test_the_last_segment_is_rolled_when_all_is_too_old(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log", settings=SETTINGS | {"retention_ms": 1000})
    log.append((b"a", b"1"), (b"b", b"1"))
    log.clock.advance(1001)
    assert apply(log) == [2]
    assert (log.log.start_offset, log.log.end_offset) == (2, 2)
    assert apply(log) == [2]
    assert log.append((b"c", b"1")) == 2
    log.open()
    assert (log.log.start_offset, log.log.end_offset) == (2, 3)


@pytest.mark.parametrize(
    ("segments_kept", "slack_bytes", "left"),
    [(5, 0, [0, 1, 2, 3, 4, 5]), (3, 0, [2, 3, 4, 5]), (3, 1, [1, 2, 3, 4, 5]), (0, 0, [5])],
)
def test_segments_go_while_what_is_left_has_the_size(
    tmp_path: Path, segments_kept: int, slack_bytes: int, left: list[int]
) -> None:
    log = log_of(tmp_path, 5)
    segment_bytes = log.log.segments[0].size_bytes
    log.settings["retention_bytes"] = segments_kept * segment_bytes + slack_bytes
    log.log.update_config(log.config)
    assert apply(log) == left


def test_segments_before_the_start_offset_go_from_compacted_topics_too(tmp_path: Path) -> None:
    log = log_of(tmp_path, 4, cleanup_policy=("compact",), retention_ms=1)
    assert apply(log) == [0, 1, 2, 3, 4]
    log.log.start_offset = 2
    assert apply(log) == [2, 3, 4]


def test_a_compacted_topic_may_also_delete(tmp_path: Path) -> None:
    log = log_of(tmp_path, 4, cleanup_policy=("compact", "delete"), retention_ms=2000)
    assert apply(log) == [2, 3, 4]
    assert log.compact_sealed() == 1
    assert log.records() == {3: (b"key", b"3")}


def test_nothing_beyond_the_high_watermark_goes(tmp_path: Path) -> None:
    log = log_of(tmp_path, 4, retention_ms=0)
    log.log.high_watermark = 2
    gone = expired_segments(log.log, log.clock.now_ms())
    assert [segment.base_offset for segment in gone] == [0, 1]


def test_an_empty_log_has_nothing_to_lose(tmp_path: Path) -> None:
    log = Cleaned(tmp_path / "log", settings=SETTINGS | {"retention_ms": 0, "retention_bytes": 0})
    assert apply(log) == []
