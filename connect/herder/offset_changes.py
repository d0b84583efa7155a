"""The offsets of connectors, as users see and change them.

The offsets of a source are in the worker's store, by source partition; those of a sink are the
offsets of its consumer group.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broker.client.cluster_admin import Admin
from broker.model import TopicPartition
from connect.api import Connector, SinkConnector, SourceConnector
from connect.clients import Clients
from connect.config.allowed_paths import AllowedPaths
from connect.errors import BadRequest, ConnectError, RetriableError
from connect.plugins import Plugins
from connect.state.config_store import Config
from connect.state.group_offsets import (
    alter_offsets,
    group_of,
    list_offsets,
    parse_offsets,
    reset_offsets,
)
from connect.state.offsets import OffsetStore, SourceOffset


@dataclass(frozen=True, slots=True)
class WrittenOffset:
    """An offset in a request or response; an offset of None resets the partition."""

    partition: Mapping[str, object] | None
    offset: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class OffsetChanges:
    """Lists the offsets of connectors, and changes those of stopped ones."""

    plugins: Plugins
    clients: Clients
    # The store of the offsets of a source connector.
    store_of: Callable[[Config], OffsetStore]
    allowed_paths: AllowedPaths

    def listing(self, name: str, config: Config) -> list[WrittenOffset]:
        """All offsets of a connector."""
        if isinstance(self._connector(config), SourceConnector):
            return [WrittenOffset(*offset) for offset in self.store_of(config).all_of(name)]
        with self.clients.admin(config) as administration:
            found = list_offsets(administration, group_of(name, config))
        return [WrittenOffset(*offset) for offset in found]

    def alter(self, name: str, config: Config, wanted: Sequence[WrittenOffset]) -> str:
        """Change offsets; returns a message."""
        connector = self._connector(config)
        if isinstance(connector, SourceConnector):
            return _message("altered", self._save(name, config, connector, source_offsets(wanted)))
        offsets = parse_offsets([(each.partition, each.offset) for each in wanted])
        managed = _agreed(connector, config, offsets)
        with self.clients.admin(config) as administration:
            _check_partitions(name, administration, offsets)
            alter_offsets(administration, group_of(name, config), offsets)
        return _message("altered", managed)

    def reset(self, name: str, config: Config) -> str:
        """Reset all offsets; returns a message."""
        connector = self._connector(config)
        known = self.listing(name, config)
        if isinstance(connector, SourceConnector):
            forgotten = [SourceOffset(each.partition or {}, None) for each in known]
            return _message("reset", self._save(name, config, connector, forgotten))
        offsets = parse_offsets([(each.partition, None) for each in known])
        managed = _agreed(connector, config, offsets)
        with self.clients.admin(config) as administration:
            reset_offsets(administration, group_of(name, config))
        return _message("reset", managed)

    def _save(
        self,
        name: str,
        config: Config,
        connector: SourceConnector,
        offsets: Sequence[SourceOffset],
    ) -> bool:
        try:
            managed = connector.alter_offsets(config, [(each[0], each[1]) for each in offsets])
        except ConnectError as error:
            raise _not_agreed(error) from error
        self.store_of(config).save(name, offsets)
        return managed

    def _connector(self, config: Config) -> Connector:
        found = self.plugins.connector(config.get("connector.class", ""))
        self.allowed_paths.check(found, config)
        return found()


def source_offsets(wanted: Sequence[WrittenOffset]) -> list[SourceOffset]:
    """Offsets of a source; those without a partition are ignored."""
    result = []
    for each in wanted:
        if each.partition is not None:
            result.append(SourceOffset(each.partition, each.offset))
        elif each.offset is not None:
            raise BadRequest("Partition objects cannot be null")
    return result


def _agreed(
    connector: Connector, config: Config, offsets: Mapping[TopicPartition, int | None]
) -> bool:
    assert isinstance(connector, SinkConnector), "a connector is a source or a sink"
    try:
        return connector.alter_offsets(config, offsets)
    except ConnectError as error:
        raise _not_agreed(error) from error


def _not_agreed(error: ConnectError) -> ConnectError:
    """The connector refused these offsets, for which Kafka Connect returns 500."""
    if isinstance(error, RetriableError):
        return error
    return BadRequest(error.message, at=error.at, hint=error.hint)


def _check_partitions(
    name: str, administration: Admin, offsets: Mapping[TopicPartition, int | None]
) -> None:
    """Raise BadRequest for partitions that do not exist: the group would wait for them."""
    topics = administration.describe_topics({tp.topic for tp in offsets})
    for tp in offsets:
        known = topics.values.get(tp.topic)
        if known is None or tp.partition not in range(len(known.partitions)):
            raise BadRequest(
                f"Failed to alter consumer group offsets for connector {name}",
                hint=f'topic "{tp.topic}" has no partition {tp.partition}',
            )


def _message(what: str, managed: bool) -> str:
    if managed:
        return f"The offsets for this connector have been {what} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {what} successfully. "
        "However, if this connector manages offsets externally, they will need to be manually "
        f"{what} in the system that the connector uses."
    )
