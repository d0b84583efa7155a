"""Records of the registry's topic, in the format of Confluent's registry.

    key                                                        value
    {"keytype":"SCHEMA","subject":s,"version":v,"magic":1}     {"subject":s,"version":v,"id":i,
                                                                ...,"schema":text,"deleted":false}
    {"keytype":"CONFIG","subject":s,"magic":0}                 {"subject":s,"compatibilityLevel":l}
    {"keytype":"MODE","subject":s,"magic":0}                   {"subject":s,"mode":m}
    {"keytype":"DELETE_SUBJECT","subject":s,"magic":0}         {"subject":s,"version":last}
    {"keytype":"CLEAR_SUBJECT","subject":s,"magic":0}          {"subject":s}
    {"keytype":"CONTEXT","tenant":t,"context":c,"magic":0}     {"tenant":t,"context":c}
    {"keytype":"NOOP","magic":0}                               nothing, or ours: {"maxIds":{c:i}}

A null value deletes the key's entry. A global setting has no subject. The value of a NOOP is
Millstream's own: other registries ignore it, and it stores the highest ids when compaction removes
the schemas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec
import orjson

from broker.registry.fingerprint import guid_of
from broker.registry.subject_names import whole_name
from broker.registry.values import Mode, StoredSchema, SubjectConfig
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import Reference, Schema, SchemaKind

T = TypeVar("T")

NUMBER_MAX = (1 << 31) - 1
# The order in which Confluent writes the fields of a configuration; other fields follow.
CONFIG_FIELDS = (
    "alias",
    "normalize",
    "validateFields",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)


class BadRecord(ValueError):
    """An invalid record; the message contains the reason."""


@dataclass(frozen=True, slots=True)
class SchemaRecord:
    """A version of a subject, or its deletion."""

    subject: str
    version: int
    stored: StoredSchema | None


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """The configuration of a subject, a context or globally (None), or its deletion."""

    subject: str | None
    config: SubjectConfig | None


@dataclass(frozen=True, slots=True)
class ModeRecord:
    """The mode of a subject, a context or globally (None), or its deletion."""

    subject: str | None
    mode: Mode | None


@dataclass(frozen=True, slots=True)
class DeleteSubjectRecord:
    """Soft deletion of all versions of a subject up to one."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ClearSubjectRecord:
    """Removes soft deleted versions of a subject, a context or globally (None)."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextRecord:
    """A context, or its deletion."""

    context: str
    tenant: str = "default"
    exists: bool = True


@dataclass(frozen=True, slots=True)
class NoopRecord:
    """Contains only the highest assigned ids, by context."""

    max_ids: Mapping[str, int]


Record = (
    SchemaRecord
    | ConfigRecord
    | ModeRecord
    | DeleteSubjectRecord
    | ClearSubjectRecord
    | ContextRecord
    | NoopRecord
)


# --- writing ----------------------------------------------------------------------------------


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """Key and value of a record."""
    key, value = _fields(record)
    return orjson.dumps(key), None if value is None else orjson.dumps(value)


def _fields(record: Record) -> tuple[dict[str, object], dict[str, object] | None]:
    match record:
        case SchemaRecord(subject, version, stored):
            key: dict[str, object] = {"keytype": "SCHEMA", "subject": subject, "version": version}
            return key | {"magic": 1}, None if stored is None else _schema_value(stored)
        case ConfigRecord(subject, config):
            return _key("CONFIG", subject), None if config is None else (
                _about(subject) | _config_value(config)
            )
        case ModeRecord(subject, mode):
            return _key("MODE", subject), None if mode is None else (
                _about(subject) | {"mode": mode.value}
            )
        case DeleteSubjectRecord(subject, version):
            return _key("DELETE_SUBJECT", subject), {"subject": subject, "version": version}
        case ClearSubjectRecord(subject):
            return _key("CLEAR_SUBJECT", subject), _about(subject)
        case ContextRecord(context, tenant, exists):
            named: dict[str, object] = {"tenant": tenant, "context": context}
            key = {"keytype": "CONTEXT", **named, "magic": 0}
            return key, named if exists else None
        case NoopRecord(max_ids):
            return {"keytype": "NOOP", "magic": 0}, {"maxIds": dict(max_ids)}


def _key(keytype: str, subject: str | None) -> dict[str, object]:
    return {"keytype": keytype, **_about(subject), "magic": 0}


def _about(subject: str | None) -> dict[str, object]:
    return {} if subject is None else {"subject": subject}


def _schema_value(stored: StoredSchema) -> dict[str, object]:
    schema = stored.schema
    value: dict[str, object] = {
        "subject": stored.subject,
        "version": stored.version,
        "id": stored.schema_id,
    }
    if schema.kind is not SchemaKind.AVRO:
        value["schemaType"] = schema.kind.value
    if schema.references:
        value["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ]
    if stored.metadata is not None:
        value["metadata"] = stored.metadata
    if stored.rule_set is not None:
        value["ruleSet"] = stored.rule_set
    return value | {"schema": schema.text, "deleted": stored.deleted}


def _config_value(config: SubjectConfig) -> dict[str, object]:
    fields = dict(config.fields)
    if config.level is not None:
        fields["compatibilityLevel"] = config.level.value
    first = {name: fields.pop(name) for name in CONFIG_FIELDS if name in fields}
    return first | fields


# --- reading ----------------------------------------------------------------------------------

Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
Version = Annotated[int, msgspec.Meta(ge=1, le=NUMBER_MAX)]


class _Key(msgspec.Struct):
    keytype: str
    subject: str | None = None
    version: Version | None = None
    magic: Annotated[int, msgspec.Meta(ge=0, le=1)] = 1
    tenant: str | None = None
    context: str | None = None


class _ReferenceValue(msgspec.Struct):
    name: str
    subject: str
    version: Annotated[int, msgspec.Meta(ge=-1, le=NUMBER_MAX)]


class _SchemaValue(msgspec.Struct, rename="camel"):
    id: Number
    schema: str
    schema_type: SchemaKind | None = None
    references: list[_ReferenceValue] | None = None
    metadata: dict[str, object] | None = None
    rule_set: dict[str, object] | None = None
    deleted: bool | None = None


class _ModeValue(msgspec.Struct):
    mode: Mode


class _DeleteSubjectValue(msgspec.Struct):
    version: Number


class _NoopValue(msgspec.Struct, rename="camel"):
    max_ids: dict[str, Number] = {}


_key_of = msgspec.json.Decoder(_Key).decode
_schema_value_of = msgspec.json.Decoder(_SchemaValue).decode


def decode(key: bytes | None, value: bytes | None) -> Record:
    """The decoded record; BadRecord if it is invalid."""
    if key is None:
        raise BadRecord("there is no key")
    try:
        named = _key_of(key)
        if named.keytype == "SCHEMA":
            return _schema_record(named, value)
        return _other_record(named, value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadRecord(str(error)) from None


def _schema_record(key: _Key, value: bytes | None) -> SchemaRecord:
    if key.subject is None or key.version is None:
        raise BadRecord("the key of a schema needs a subject and a version")
    subject, version = whole_name(key.subject), key.version
    if value is None:
        return SchemaRecord(subject, version, None)
    given = _schema_value_of(value)
    references = tuple(
        Reference(each.name, each.subject, each.version) for each in given.references or ()
    )
    schema = Schema(given.schema, given.schema_type or SchemaKind.AVRO, references)
    guid = guid_of(schema, given.metadata, given.rule_set)
    stored = StoredSchema(
        subject,
        version,
        given.id,
        guid,
        schema,
        given.metadata,
        given.rule_set,
        given.deleted is True,
    )
    return SchemaRecord(subject, version, stored)


def _other_record(key: _Key, value: bytes | None) -> Record:
    subject = None if key.subject is None else whole_name(key.subject)
    match key.keytype:
        case "NOOP":
            return NoopRecord({} if value is None else _read(value, _NoopValue).max_ids)
        case "CONFIG":
            return ConfigRecord(subject, None if value is None else _config(value))
        case "MODE":
            return ModeRecord(subject, None if value is None else _read(value, _ModeValue).mode)
        case "CONTEXT" if key.context is not None:
            return ContextRecord(key.context, key.tenant or "default", value is not None)
        case "CLEAR_SUBJECT" | "DELETE_SUBJECT" if value is None:
            return NoopRecord({})
        case "CLEAR_SUBJECT":
            return ClearSubjectRecord(subject)
        case "DELETE_SUBJECT" if subject is not None and value is not None:
            return DeleteSubjectRecord(subject, _read(value, _DeleteSubjectValue).version)
        case _:
            raise BadRecord(f"keytype {key.keytype!r} is not known, or its key is incomplete")


def _read(value: bytes, form: type[T]) -> T:
    return msgspec.json.decode(value, type=form)


def _config(value: bytes) -> SubjectConfig:
    fields = _read(value, dict[str, object])
    fields.pop("subject", None)
    level = fields.pop("compatibilityLevel", None)
    if level is None:
        return SubjectConfig(None, fields)
    if not isinstance(level, str) or level.upper() not in CompatibilityLevel.__members__:
        raise BadRecord(f"compatibilityLevel {level!r} is not known")
    return SubjectConfig(CompatibilityLevel[level.upper()], fields)
