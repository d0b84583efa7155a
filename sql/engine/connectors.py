"""Connectors: statements on connectors, through the REST API of a Connect server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from connect.client import ConnectClient, ConnectRefused
from connect.config.hidden_values import hide_value, is_secret_name
from sql.engine.entities import (
    ConnectorDescription,
    ConnectorInfo,
    ConnectorsList,
    ConnectorSummary,
    ConnectorTask,
    CreatedConnector,
    DroppedConnector,
    Entity,
    PluginsList,
    PluginSummary,
    WarningEntity,
)
from sql.errors import StatementFailed
from sql.syntax.expressions import (
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    IntegerLiteral,
    StringLiteral,
)
from sql.syntax.statements import (
    ConnectorKind,
    CreateConnector,
    DescribeConnector,
    DropConnector,
    Listing,
    Show,
)

NOT_FOUND = 404
CONFLICT = 409

# Any: Connect's responses are JSON of many shapes.
Json = Any


class Connectors:
    """Statements on connectors, executed by a Connect server."""

    def __init__(self, client: ConnectClient | None) -> None:
        """Without a client every statement is refused."""
        self._given = client

    @property
    def _client(self) -> ConnectClient:
        if self._given is None:
            raise StatementFailed(
                "no Connect server configured", hint='set "ksql.connect.url" to its address'
            )
        return self._given

    def create(self, statement: CreateConnector, text: str) -> Entity:
        """CREATE CONNECTOR."""
        config = {name: _literal_text(value) for name, value in statement.properties}
        config["name"] = statement.name
        try:
            answer = self._client.create(statement.name, config)
        except ConnectRefused as error:
            if error.status == CONFLICT and statement.if_not_exists:
                return WarningEntity(text, f"Connector {statement.name} already exists")
            raise StatementFailed(
                f"Failed to create connector '{statement.name}': {error.message}"
            ) from error
        return CreatedConnector(text, _info(answer, statement.kind))

    def drop(self, statement: DropConnector, text: str) -> Entity:
        """DROP CONNECTOR."""
        try:
            self._client.delete(statement.name)
        except ConnectRefused as error:
            if error.status == NOT_FOUND and statement.if_exists:
                return WarningEntity(text, f"Connector '{statement.name}' does not exist.")
            raise StatementFailed(f"Failed to drop connector: {error.message}") from error
        return DroppedConnector(text, statement.name)

    def show(self, statement: Show, text: str) -> Entity:
        """SHOW CONNECTORS and SHOW CONNECTOR PLUGINS."""
        with _answered():
            return self._show(statement, text)

    def _show(self, statement: Show, text: str) -> Entity:
        if statement.what is Listing.CONNECTOR_PLUGINS:
            return PluginsList(
                text,
                tuple(
                    PluginSummary(
                        str(each.get("class")),
                        str(each.get("type", "unknown")),
                        str(each.get("version", "")),
                    )
                    for each in self._client.plugins()
                ),
            )
        wanted = {
            Listing.SOURCE_CONNECTORS: "source",
            Listing.SINK_CONNECTORS: "sink",
        }.get(statement.what)
        found = [self._summary(name) for name in self._client.names()]
        return ConnectorsList(text, tuple(each for each in found if wanted in (None, each.type)))

    def describe(self, statement: DescribeConnector, text: str) -> Entity:
        """DESCRIBE CONNECTOR."""
        with _answered():
            described = self._client.describe(statement.name)
            return ConnectorDescription(
                text,
                str(described.get("config", {}).get("connector.class", "")),
                self._client.status(statement.name),
                topics=tuple(self._client.topics(statement.name)),
            )

    def _summary(self, name: str) -> ConnectorSummary:
        described = self._client.describe(name)
        status = self._client.status(name)
        tasks = status.get("tasks", [])
        running = sum(each.get("state") == "RUNNING" for each in tasks)
        state = str(status.get("connector", {}).get("state", "UNKNOWN"))
        if state == "RUNNING" and running < len(tasks):
            state = f"WARNING ({running}/{len(tasks)} tasks RUNNING)"
        elif state == "RUNNING":
            state = f"RUNNING ({running}/{len(tasks)} tasks RUNNING)"
        return ConnectorSummary(
            name,
            str(described.get("type", "unknown")),
            str(described.get("config", {}).get("connector.class", "")),
            state,
        )


@contextmanager
def _answered() -> Iterator[None]:
    """Converts Connect's errors to StatementFailed with Connect's message."""
    try:
        yield
    except ConnectRefused as error:
        raise StatementFailed(error.message, hint=error.hint) from error


def _info(answer: Json, kind: ConnectorKind) -> ConnectorInfo:
    return ConnectorInfo(
        str(answer.get("name")),
        # Another Connect server may show passwords.
        {
            str(name): hide_value(str(name), str(value), password=is_secret_name(str(name)))
            for name, value in answer.get("config", {}).items()
        },
        tuple(
            ConnectorTask(str(each.get("connector")), int(each.get("task", 0)))
            for each in answer.get("tasks", [])
        ),
        str(answer.get("type") or kind.value.lower()),
    )


def _literal_text(literal: object) -> str:
    match literal:
        case BooleanLiteral(value=value):
            return str(value).lower()
        case (
            StringLiteral(value=value)
            | IntegerLiteral(value=value)
            | DecimalLiteral(value=value)
            | DoubleLiteral(value=value)
        ):
            return str(value)
        case _:
            return "null"
