"""Handlers: what happens to a record that cannot be read, processed or written.

    kind             fails when                                    settings name
    deserialization  a key or value cannot be deserialized         deserialization_exception_handler
    processing       a node or punctuator raises an exception      processing_exception_handler
    production       a result cannot be serialized, or is refused  production_exception_handler

A handler is a function that gets a Failure and returns what to do. The built-in ones also write the
record to the dead-letter topic if `errors_dead_letter_queue_topic_name` is set, as in Kafka
Streams.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from streams.record import Headers, Position

logger = logging.getLogger(__name__)

SHOWN_KEY_CHARACTERS = 80


class FailureKind(Enum):
    """What failed."""

    DESERIALIZATION = "deserialization"
    PROCESSING = "processing"
    PRODUCTION = "production"


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that failed, where and why.

    `raw_key` and `raw_value` are the bytes of the input record; None for punctuators and for
    results that were cached until a commit. `key` and `value` are those of the failed node's input;
    None if they could not be deserialized.
    """

    kind: FailureKind
    error: Exception
    node: str
    task_id: str
    position: Position | None
    timestamp_ms: int
    key: object = None
    value: object = None
    headers: Headers = ()
    raw_key: bytes | None = None
    raw_value: bytes | None = None
    raw_headers: Headers = ()

    @property
    def at(self) -> str:
        """The location of the failure, for messages."""
        parts = [f'node "{self.node}"', f"task {self.task_id}"]
        if self.position is not None:
            topic, partition, offset = self.position
            parts.insert(0, f'topic "{topic}" partition {partition} offset {offset}')
        shown = self.raw_key if self.key is None else self.key
        if shown is not None:
            parts.append(f"key {shortened(shown)}")
        return ", ".join(parts)


class Answer(Enum):
    """What to do after a failure."""

    FAIL = "fail"  # stop the application
    CONTINUE = "continue"  # drop the record at the node where it failed, and continue
    DEAD_LETTER = "dead_letter"  # as CONTINUE, and write it to the dead-letter topic
    RETRY = "retry"  # if the broker refused the record, send it again; otherwise as FAIL


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A handler's answer: write the record to this topic, and continue unless `fail` is set."""

    topic: str
    fail: bool = False


Handler = Callable[[Failure], Answer | DeadLetter]


def log_and_fail(failure: Failure) -> Answer:
    """Stop the application at the record; the default of all three settings."""
    logger.error("%s failed: %s", failure.kind.value, failure.at, exc_info=failure.error)
    return Answer.FAIL


def log_and_continue(failure: Failure) -> Answer:
    """Log the failure, drop the record and continue."""
    logger.warning("%s failed: %s", failure.kind.value, failure.at, exc_info=failure.error)
    return Answer.CONTINUE


@dataclass(frozen=True, slots=True)
class DeadLetterHandler:
    """Writes failed records to a topic; created by `dead_letter`."""

    topic: str

    def __call__(self, failure: Failure) -> DeadLetter:
        """Log the failure; the record is written to the topic."""
        logger.warning(
            '%s failed: %s; the record goes to "%s": %s',
            failure.kind.value,
            failure.at,
            self.topic,
            failure.error,
        )
        return DeadLetter(self.topic)


def dead_letter(topic: str) -> DeadLetterHandler:
    """Write failed records to a topic, unchanged but with headers that describe the error.

    >>> dead_letter("orders-that-failed")
    DeadLetterHandler(topic='orders-that-failed')
    """
    return DeadLetterHandler(topic)


def shortened(value: object) -> str:
    """A key, for messages."""
    text = repr(value)
    if len(text) <= SHOWN_KEY_CHARACTERS:
        return text
    return f"{text[:SHOWN_KEY_CHARACTERS]}... ({len(text)} characters)"
