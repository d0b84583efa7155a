"""Table joined with table by a foreign key: a key that is extracted from the left value.

    left change  -> send    --subscription topic, by foreign key--> receive -> answer -> response
    right change -> notify  (all subscriptions to its key in the subscription store)   -> response
    response     --response topic, by left key--> resolve (with the current left value)  -> result

What a left change sends (x, y: foreign keys; the old value's -> the new value's):

    change          inner                                left
    none -> x       x: ONLY_IF_RIGHT_EXISTS              x: NULL_IF_MISSING
    none -> null    nothing, counted as dropped          null: NULL_IF_MISSING
    x -> x          x: ONLY_IF_RIGHT_EXISTS              x: NULL_IF_MISSING
    x -> y          x: DELETE, y: NULL_IF_MISSING        x: DELETE, y: NULL_IF_MISSING
    x -> null       x: DELETE_AND_PROPAGATE              x: DELETE, null: NULL_IF_MISSING
    null -> y       y: ONLY_IF_RIGHT_EXISTS              y: NULL_IF_MISSING
    x -> deleted    x: DELETE_AND_PROPAGATE              x: DELETE, null: NULL_IF_MISSING
    unknown deleted nothing                              nothing

A null foreign key has no subscription; the message only fetches the response "no right value". A
response is dropped if its left value has changed: the new value has sent a subscription, too. But
if a right row is deleted while its left row changes, an inner join (ONLY_IF_RIGHT_EXISTS) sends no
response for the new value, and the result would never be deleted, as in Kafka Streams. Therefore
deletions have their foreign key in a header: if the left value still refers to it, the result is
deleted. Responses of one foreign key arrive in order, so a later one is not undone.

If a right row changes many times within one round of the task (a few chunks of records), its left
rows are notified once, with its last value: each response would replace the one before. With a
cache of 0 bytes, which means that every change is emitted, they are notified at each change.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from broker.serde import Serde
from streams.operators.foreign_key_messages import (
    Instruction,
    Response,
    Subscription,
    decode_response,
    decode_subscription,
    encode_response,
    encode_subscription,
    hash_of,
    subscription_prefix,
)
from streams.operators.joiner import Joiner, key_serde_or_default, value_serde_or_default
from streams.operators.views import TableView
from streams.processor import NodeContext, Process
from streams.record import Change, Headers, Position
from streams.state.store import TimestampedKeyValueStore

OUT_OF_ORDER = "an out-of-order change of a versioned table does not change the join"
LEFT_HAS_CHANGED = "the left record has changed since it subscribed"
NO_FOREIGN_KEY = "a record without a foreign key cannot be joined"

# The header of a response about a deletion: the foreign key that was deleted.
DELETED_HEADER = "__deleted_foreign_key"

ForeignKey = Callable[[object, object], object]  # left key and left value to the right key


@dataclass(frozen=True, slots=True)
class ForeignKeySerdes:
    """Serdes of both tables; None: the application's. Any: the user's types."""

    left_key: Serde[Any] | None = None
    left_value: Serde[Any] | None = None
    right_key: Serde[Any] | None = None
    right_value: Serde[Any] | None = None

    def open(self, context: NodeContext, topic: str) -> "_OpenSerdes":
        """Resolve the serdes in a task."""
        return _OpenSerdes(
            f"{context.application_id}-{topic}",
            key_serde_or_default(context, self.left_key),
            value_serde_or_default(context, self.left_value),
            key_serde_or_default(context, self.right_key),
            value_serde_or_default(context, self.right_value),
        )


@dataclass(frozen=True, slots=True)
class _OpenSerdes:
    """The serdes in a task; each uses its own topic name, for schema registries."""

    topic: str
    left_key_serde: Serde[Any]
    left_value_serde: Serde[Any]
    right_key_serde: Serde[Any]
    right_value_serde: Serde[Any]

    def left_key(self, key: object) -> bytes:
        return self.left_key_serde.serialize(f"{self.topic}-pk", key) or b""

    def left_key_of(self, data: bytes) -> object:
        return self.left_key_serde.deserialize(f"{self.topic}-pk", data)

    def foreign_key(self, key: object) -> bytes:
        return self.right_key_serde.serialize(f"{self.topic}-fk", key) or b""

    def left_hash(self, value: object) -> bytes | None:
        data = self.left_value_serde.serialize(f"{self.topic}-vh", value)
        return None if data is None else hash_of(data)

    def right_value(self, value: object) -> bytes | None:
        return self.right_value_serde.serialize(f"{self.topic}-rv", value)

    def right_value_of(self, data: bytes | None) -> object:
        return self.right_value_serde.deserialize(f"{self.topic}-rv", data)


@dataclass(frozen=True, slots=True)
class SendSubscriptions:
    """Sends subscriptions to the right side when the left table changes."""

    foreign_key: ForeignKey
    serdes: ForeignKeySerdes
    topic: str
    left_join: bool = False
    latest_only: bool = False  # the left table is versioned

    def open(self, context: NodeContext) -> Process:
        forward, drop, partition = context.forward, context.drop, context.partition
        convert, extract = self.serdes.open(context, self.topic), self.foreign_key
        latest_only = self.latest_only
        choose = _left_instructions if self.left_join else _inner_instructions

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new, old, latest = cast("Change", value)
            if latest_only and not latest:
                drop(OUT_OF_ORDER)
                return
            if new is None and old is None:
                return
            before = None if old is None else extract(key, old)
            after = None if new is None else extract(key, new)
            instructions = choose(before, after, convert.foreign_key)
            if new is not None and after is None and not self.left_join:
                drop(NO_FOREIGN_KEY)
            if not instructions:
                return
            value_hash = None if new is None else convert.left_hash(new)
            left_key = convert.left_key(key)
            for foreign_key, instruction in instructions:
                subscription = Subscription(value_hash, instruction, partition, left_key)
                forward(foreign_key, encode_subscription(subscription), timestamp_ms, headers)

        return process


_Instructions = tuple[tuple[object, Instruction], ...]


def _inner_instructions(
    before: object, after: object, to_bytes: Callable[[object], bytes]
) -> _Instructions:
    if after is None:
        return () if before is None else ((before, Instruction.DELETE_AND_PROPAGATE),)
    if before is None or to_bytes(before) == to_bytes(after):
        return ((after, Instruction.PROPAGATE_ONLY_IF_RIGHT_EXISTS),)
    # The old key may have had a result, which a response from the new one must replace.
    return (
        (before, Instruction.DELETE_NO_PROPAGATE),
        (after, Instruction.PROPAGATE_NULL_IF_MISSING),
    )


def _left_instructions(
    before: object, after: object, to_bytes: Callable[[object], bytes]
) -> _Instructions:
    answer = (after, Instruction.PROPAGATE_NULL_IF_MISSING)
    if before is None or (after is not None and to_bytes(before) == to_bytes(after)):
        return (answer,)
    return ((before, Instruction.DELETE_NO_PROPAGATE), answer)


@dataclass(frozen=True, slots=True)
class ReceiveSubscriptions:
    """Stores subscriptions, and forwards them; the key is the foreign key."""

    store: str
    serdes: ForeignKeySerdes
    topic: str

    def open(self, context: NodeContext) -> Process:
        forward, drop = context.forward, context.drop
        store = cast("TimestampedKeyValueStore[bytes, bytes]", context.store(self.store))
        put, delete = store.put, store.delete
        convert = self.serdes.open(context, self.topic)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            message = cast("bytes", value)
            subscription = decode_subscription(message)
            instruction = subscription.instruction
            if key is None:
                if instruction is not Instruction.PROPAGATE_NULL_IF_MISSING:
                    drop(NO_FOREIGN_KEY)
                    return
            else:
                store_key = subscription_prefix(convert.foreign_key(key)) + subscription.left_key
                if instruction <= Instruction.DELETE_AND_PROPAGATE:
                    delete(store_key)
                else:
                    put(store_key, message, timestamp_ms)
            forward(key, subscription, timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class AnswerSubscriptions:
    """Responds to new subscriptions with the right value; the key becomes the left key."""

    right: TableView
    serdes: ForeignKeySerdes
    topic: str

    def open(self, context: NodeContext) -> Process:
        forward, get = context.forward, self.right.open(context)
        convert = self.serdes.open(context, self.topic)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            value_hash, instruction, partition, left_key = cast("Subscription", value)
            if instruction is Instruction.DELETE_NO_PROPAGATE:
                return
            found = None if key is None else get(key)
            if found is not None:
                timestamp_ms = max(timestamp_ms, found[1])
            elif instruction is Instruction.PROPAGATE_ONLY_IF_RIGHT_EXISTS:
                return
            answer = None
            if found is not None and instruction is not Instruction.DELETE_AND_PROPAGATE:
                answer = convert.right_value(found[0])
            message = encode_response(Response(value_hash, partition, answer))
            forward(convert.left_key_of(left_key), message, timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class NotifySubscribers:
    """Sends a change of a right key to all left records that refer to it."""

    store: str
    serdes: ForeignKeySerdes
    topic: str
    latest_only: bool = False  # the right table is versioned

    def open(self, context: NodeContext) -> Process:
        drop, latest_only = context.drop, self.latest_only
        convert = self.serdes.open(context, self.topic)
        notify = self._open_notify(context, convert)
        if context.cache_bytes > 0:
            notify = _once_per_round(context, notify)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new, _, latest = cast("Change", value)
            if key is None:
                drop("a record without a key cannot be joined")
                return
            if latest_only and not latest:
                drop(OUT_OF_ORDER)
                return
            answer = convert.right_value(new)
            foreign_key = convert.foreign_key(key)
            if new is None:
                headers = (*headers, (DELETED_HEADER, foreign_key))
            notify(foreign_key, answer, timestamp_ms, headers)

        return process

    def _open_notify(self, context: NodeContext, convert: "_OpenSerdes") -> "_Notify":
        forward = context.forward
        store = cast("TimestampedKeyValueStore[bytes, bytes]", context.store(self.store))

        def notify(
            foreign_key: bytes, answer: bytes | None, timestamp_ms: int, headers: Headers
        ) -> None:
            for _, (message, _) in store.prefix_scan(subscription_prefix(foreign_key)):
                subscription = decode_subscription(message)
                response = Response(subscription.hash, subscription.partition, answer)
                left_key = convert.left_key_of(subscription.left_key)
                forward(left_key, encode_response(response), timestamp_ms, headers)

        return notify


# The foreign key, the right value, timestamp_ms and headers of the response to all its left rows.
_Notify = Callable[[bytes, bytes | None, int, Headers], None]


def _once_per_round(context: NodeContext, notify: _Notify) -> _Notify:
    """Notify once per foreign key, with its last value, when the round ends or the task commits."""
    changes: dict[bytes, tuple[bytes | None, int, Headers, Position | None]] = {}

    def add(foreign_key: bytes, answer: bytes | None, timestamp_ms: int, headers: Headers) -> None:
        changes.pop(foreign_key, None)  # in the order of the last changes
        changes[foreign_key] = (answer, timestamp_ms, headers, context.position)

    def release() -> None:
        while changes:
            foreign_key = next(iter(changes))
            answer, timestamp_ms, headers, position = changes.pop(foreign_key)
            context.at(position, partial(notify, foreign_key, answer, timestamp_ms, headers))

    context.after_round(release)
    context.before_commit(release)
    context.on_close(changes.clear)
    return add


@dataclass(frozen=True, slots=True)
class ResolveResponses:
    """Joins a response with the left value, if that has not changed."""

    left: TableView
    serdes: ForeignKeySerdes
    topic: str
    joiner: Joiner
    foreign_key: ForeignKey
    left_join: bool = False

    def open(self, context: NodeContext) -> Process:
        forward, drop, get = context.forward, context.drop, self.left.open(context)
        convert, join, extract = (
            self.serdes.open(context, self.topic),
            self.joiner,
            self.foreign_key,
        )
        left_join = self.left_join

        def refers_to(key: object, left: object, deleted: bytes | None) -> bool:
            if left is None or deleted is None:
                return False
            foreign_key = extract(key, left)
            return foreign_key is not None and convert.foreign_key(foreign_key) == deleted

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            response = decode_response(cast("bytes", value))
            deleted = None
            if headers and headers[-1][0] == DELETED_HEADER:
                deleted, headers = headers[-1][1], headers[:-1]
            found = get(key)
            left = None if found is None else found[0]
            if response.hash != (None if left is None else convert.left_hash(left)):
                if not left_join and refers_to(key, left, deleted):
                    forward(key, None, timestamp_ms, headers)
                    return
                drop(LEFT_HAS_CHANGED, expected=True)
                return
            result = None
            if left is not None and (response.value is not None or left_join):
                result = join(key, left, convert.right_value_of(response.value))
            forward(key, result, timestamp_ms, headers)

        return process
