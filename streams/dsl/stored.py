"""The options of serdes and stores, with defaults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypedDict, TypeVar

from broker.serde import Serde
from streams import serdes
from streams.dsl.names import check_name
from streams.errors import TopologyError
from streams.state.store import NO_LIMIT, StoreKind, StoreSpec
from streams.where import user_line
from streams.windows import Duration, milliseconds

T = TypeVar("T")

# A Python type that has an obvious serde, or a serde.
Typed = type[T] | Serde[T]
# Any, because a serde of a type is not a serde of object.
AnySerde = Serde[Any]


def serde_of(given: Typed[Any] | None, default: AnySerde | None = None) -> AnySerde | None:
    """The serde of a type, or the given serde, or the default if nothing is given."""
    return default if given is None else serdes.serde_of(given, at=user_line())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How a table is stored; options that are not set have the defaults of the operation."""

    name: str | None = None  # None: the operation generates one
    key_serde: AnySerde | None = None
    value_serde: AnySerde | None = None
    caching: bool | None = None  # None: on, if results can be cached at all
    logging: bool = True
    persistent: bool = True
    retention_ms: int | None = None
    topic_config: Mapping[str, str] | None = None
    history_ms: int | None = None  # a versioned store
    given: bool = False  # the user has set any option

    def with_default_serdes(self, key: AnySerde | None, value: AnySerde | None) -> "Stored":
        """The same, with default serdes where the user has set none."""
        return replace(
            self,
            key_serde=key if self.key_serde is None else self.key_serde,
            value_serde=value if self.value_serde is None else self.value_serde,
        )

    @property
    def versioned(self) -> bool:
        """Whether older versions of a key are kept."""
        return self.history_ms is not None

    def table_spec(self, name: str) -> StoreSpec:
        """The store of a table by key: timestamped, or versioned if the user wants a history."""
        kind = StoreKind.VERSIONED if self.versioned else StoreKind.TIMESTAMPED_KEY_VALUE
        return self.spec(name, kind)

    def spec(
        self,
        name: str,
        kind: StoreKind,
        *,
        retention_ms: int = NO_LIMIT,
        window_size_ms: int = NO_LIMIT,
    ) -> StoreSpec:
        """A store of any kind; the user's retention takes precedence over the given one."""
        return StoreSpec(
            name=name,
            kind=kind,
            key_serde=self.key_serde,
            value_serde=self.value_serde,
            persistent=self.persistent,
            caching=kind is not StoreKind.VERSIONED and self.caching is not False,
            logging=self.logging,
            topic_config=dict(self.topic_config or {}),
            retention_ms=retention_ms if self.retention_ms is None else self.retention_ms,
            window_size_ms=window_size_ms,
            history_ms=NO_LIMIT if self.history_ms is None else self.history_ms,
        )


class StoreOptions(TypedDict, total=False):
    """Options of every operation that creates a table; see `stored`."""

    store: str | Stored | None
    # Any, because the operation's own type variables cannot be named here.
    key: Typed[Any] | None
    value: Typed[Any] | None
    caching: bool | None
    logging: bool
    persistent: bool
    retention: Duration | None
    topic_config: Mapping[str, str] | None
    versioned_history: Duration | None


def stored(  # noqa: PLR0913 - one argument per option
    store: str | Stored | None = None,
    *,
    key: Typed[Any] | None = None,
    value: Typed[Any] | None = None,
    caching: bool | None = None,
    logging: bool = True,
    persistent: bool = True,
    retention: Duration | None = None,
    topic_config: Mapping[str, str] | None = None,
    versioned_history: Duration | None = None,
) -> Stored:
    """The options of an operation that creates a table, as one value."""
    if isinstance(store, Stored):
        return store.with_default_serdes(serde_of(key), serde_of(value))
    options = Stored(
        name=None if store is None else check_name(store, "store"),
        key_serde=serde_of(key),
        value_serde=serde_of(value),
        caching=caching,
        logging=logging,
        persistent=persistent,
        retention_ms=None if retention is None else milliseconds(retention, "retention"),
        topic_config=topic_config,
        history_ms=None
        if versioned_history is None
        else milliseconds(versioned_history, "versioned_history"),
    )
    return options if options == Stored() else replace(options, given=True)


def refuse_unknown(options: Mapping[str, object], known: Iterable[str]) -> None:
    """Check that there are no unknown options."""
    allowed = list(known)
    for name in options:
        if name not in allowed:
            near = get_close_matches(name, allowed, 1)
            raise TopologyError(
                f'"{name}" is not an option here',
                at=user_line(),
                hint=f'did you mean "{near[0]}"?' if near else "options: " + ", ".join(allowed),
            )


class JoinOptions(TypedDict, total=False):
    """Options of all joins of a stream.

    `key`, `value` and `other_value` are the serdes of the key, of this side's and of the other
    side's value. `store_name` is the base name of the stores of a stream-stream join. The last
    three are options of those stores, and of the buffer of a join with grace.
    """

    with_key: bool  # the joiner gets the key first
    # Any, because the operation's own type variables cannot be named here.
    key: Typed[Any] | None
    value: Typed[Any] | None
    other_value: Typed[Any] | None
    name: str | None
    store_name: str | None
    logging: bool
    persistent: bool
    topic_config: Mapping[str, str] | None
