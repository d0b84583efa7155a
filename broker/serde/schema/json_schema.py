"""JsonSchema: a validated JSON Schema, in the forms that the registry and serdes need."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import jsonschema_rs

from broker.errors import SchemaError
from broker.serde.schema.json_documents import JsonDocuments
from broker.serde.schema.json_text import read_json, write_json
from broker.serde.schema.schema import Resolved, SchemaKind

SHOWN_MAX = 300
UNKNOWN = re.compile(r"Resource '(.*)' is not present in a registry")


class Draft(Enum):
    """Versions of JSON Schema, by the addresses of their meta-schemas."""

    DRAFT_4 = "json-schema.org/draft-04/schema"
    DRAFT_6 = "json-schema.org/draft-06/schema"
    DRAFT_7 = "json-schema.org/draft-07/schema"
    DRAFT_2019_09 = "json-schema.org/draft/2019-09/schema"
    DRAFT_2020_12 = "json-schema.org/draft/2020-12/schema"


VALIDATORS: dict[Draft, type[jsonschema_rs.Validator]] = {
    Draft.DRAFT_4: jsonschema_rs.Draft4Validator,
    Draft.DRAFT_6: jsonschema_rs.Draft6Validator,
    Draft.DRAFT_7: jsonschema_rs.Draft7Validator,
    Draft.DRAFT_2019_09: jsonschema_rs.Draft201909Validator,
    Draft.DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
}


@dataclass(frozen=True, eq=False)
class JsonSchema:
    """A parsed JSON Schema.

    `source` is its JSON value; `documents` resolves its $refs.
    """

    source: dict[str, object] | bool
    draft: Draft
    documents: JsonDocuments
    compiled: jsonschema_rs.Validator
    canonical: str
    kind: SchemaKind = SchemaKind.JSON

    def validator(self) -> jsonschema_rs.Validator:
        """The validator of values; it is created once, with the schema."""
        return self.compiled

    def normalized(self) -> str:
        """The canonical text with all keys sorted."""
        return write_json(self.source, sort=True)

    def formatted(self, form: str) -> str:
        """The canonical text for ""; there is no other form."""
        if form:
            raise ValueError(f'a JSON schema has no form "{form}"')
        return self.canonical

    def record_name(self) -> str | None:
        """The title."""
        title = self.source.get("title") if isinstance(self.source, dict) else None
        return title if isinstance(title, str) else None


def parse_json_schema(text: str, resolved: Resolved) -> JsonSchema:
    """Parse a schema; SchemaError if it is invalid."""
    source = read_schema(text)
    references: dict[str, object] = {}
    for name, referenced in resolved.items():
        try:
            references[name] = read_schema(referenced)
        except SchemaError as error:
            raise SchemaError(f'reference "{name}": {error.message}') from error
    documents = JsonDocuments(source, references)
    draft = draft_of(source)
    return JsonSchema(
        source=source,
        draft=draft,
        documents=documents,
        compiled=compile_validator(source, draft, documents),
        canonical=write_json(source),
    )


def read_schema(text: str) -> dict[str, object] | bool:
    """Parse an object or a boolean, the only values that are schemas."""
    value = read_json(text)
    if not isinstance(value, dict | bool):
        raise SchemaError("the text is neither an object nor a boolean, so it is not a JSON Schema")
    return value


def draft_of(source: dict[str, object] | bool) -> Draft:
    """The version that $schema names; draft 7 if it names no known version."""
    given = source.get("$schema") if isinstance(source, dict) else None
    if isinstance(given, str):
        address = given.removeprefix("https://").removeprefix("http://").rstrip("#")
        for draft in Draft:
            if draft.value == address:
                return draft
    return Draft.DRAFT_7


def compile_validator(
    source: dict[str, object] | bool, draft: Draft, documents: JsonDocuments
) -> jsonschema_rs.Validator:
    """The validator of a schema; its $refs may only be resolved to the references."""
    try:
        return VALIDATORS[draft](source, retriever=retriever(documents))
    except ValueError as error:  # jsonschema_rs.ValidationError among them
        raise SchemaError(invalid(error)) from error


def retriever(documents: JsonDocuments) -> Callable[[str], dict[str, object] | bool]:
    """A function that returns the documents that the validator requests."""

    def retrieve(address: str) -> dict[str, object] | bool:
        found = documents.named(address)
        if not isinstance(found, dict | bool):
            raise ValueError("it is not among the references")
        return found

    return retrieve


def invalid(error: ValueError) -> str:
    """The error of an invalid schema, with its path."""
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error)[:SHOWN_MAX]
    if match := UNKNOWN.match(error.message):
        return f'$ref names "{match[1]}", which is not among the references'
    where = "".join(f"/{each}" for each in error.instance_path)
    return f"{error.message[:SHOWN_MAX]} at path '#{where}'"
