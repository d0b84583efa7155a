"""RegistrySchemas: the columns of registered schemas, for CREATE without columns."""

from dataclasses import dataclass

from broker.client.registry.api import SchemaRegistry
from broker.client.registry.references import resolve_references
from broker.client.serde.rows.formats import format_of
from broker.errors import MillstreamError, RegistryError
from broker.schema.parsing import parse_schema
from sql.backends.native.rows import row_options
from sql.catalog import FormatInfo
from sql.datatypes import Column
from sql.errors import StatementFailed


@dataclass(frozen=True, slots=True)
class RegistrySchemas:
    """A SchemaSource of a registry."""

    registry: SchemaRegistry

    def columns(
        self, topic: str, format_: FormatInfo, *, is_key: bool
    ) -> tuple[Column, ...] | None:
        """The columns of a topic's schema, or of the schema with the format's id."""
        subject = f"{topic}-{'key' if is_key else 'value'}"
        try:
            if format_.schema_id is None:
                schema = self.registry.version(subject).schema
            else:
                schema = self.registry.schema(format_.schema_id, subject=subject)
        except RegistryError:
            return None
        try:
            parsed = parse_schema(schema, resolve_references(self.registry, schema))
            return format_of(format_.name).columns_of(parsed, row_options(format_, is_key=is_key))
        except MillstreamError as error:
            raise StatementFailed(
                f"Unable to verify if the {'key' if is_key else 'value'} schema for topic: {topic} "
                f"is compatible with ksqlDB.\nReason: {error.message}"
            ) from error
