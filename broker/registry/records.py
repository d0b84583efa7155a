"""Records of the registry's topic, in the form Confluent's registry writes them.

    key                                                        value
    {"keytype":"SCHEMA","subject":s,"version":v,"magic":1}     {"subject":s,"version":v,"id":i,
                                                                ...,"schema":text,"deleted":false}
    {"keytype":"CONFIG","subject":s,"magic":0}                 {"subject":s,"compatibilityLevel":l}
    {"keytype":"MODE","subject":s,"magic":0}                   {"subject":s,"mode":m}
    {"keytype":"DELETE_SUBJECT","subject":s,"magic":0}         {"subject":s,"version":last}
    {"keytype":"CLEAR_SUBJECT","subject":s,"magic":0}          {"subject":s}
    {"keytype":"CONTEXT","tenant":t,"context":c,"magic":0}     {"tenant":t,"context":c}
    {"keytype":"NOOP","magic":0}                               nothing, or ours: {"maxIds":{c:i}}

No value removes what the key names. A setting of everything has no subject. The value of a NOOP
is ours: others do not look at it, and it keeps the highest ids when the schemas are compacted away.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from broker.registry.fingerprint import guid_of
from broker.registry.subject_names import whole_name
from broker.registry.values import JsonObject, Mode, StoredSchema, SubjectConfig
from broker.schema.compatibility.levels import CompatibilityLevel
from broker.schema.schema import Reference, Schema, SchemaKind

NUMBER_MAX = (1 << 31) - 1
# The order in which Confluent writes the fields of a configuration; others follow as they come.
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
    """A record that is none of the registry's; the message says why."""


@dataclass(frozen=True, slots=True)
class SchemaRecord:
    """A version of a subject, or that it is gone."""

    subject: str
    version: int
    stored: StoredSchema | None


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """The configuration of a subject, a context or everything (None), or that it is gone."""

    subject: str | None
    config: SubjectConfig | None


@dataclass(frozen=True, slots=True)
class ModeRecord:
    """The mode of a subject, a context or everything (None), or that it is gone."""

    subject: str | None
    mode: Mode | None


@dataclass(frozen=True, slots=True)
class DeleteSubjectRecord:
    """All versions of a subject up to one are softly deleted."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ClearSubjectRecord:
    """Forget what is softly deleted of a subject, a context or everything (None)."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextRecord:
    """A context is there, or no longer."""

    context: str
    tenant: str = "default"
    exists: bool = True


@dataclass(frozen=True, slots=True)
class NoopRecord:
    """Nothing but the highest ids that were given, by context."""

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


def decode(key: bytes | None, value: bytes | None) -> Record:
    """What a record says; BadRecord says what is wrong with it."""
    key_fields = _object(key, "key")
    keytype = key_fields.get("keytype")
    if keytype == "NOOP":
        return NoopRecord(_max_ids(value))
    value_fields = None if value is None else _object(value, "value")
    match keytype:
        case "SCHEMA":
            return _schema_record(key_fields, value_fields)
        case "CONFIG":
            config = None if value_fields is None else _config(value_fields)
            return ConfigRecord(_subject(key_fields), config)
        case "MODE":
            return ModeRecord(_subject(key_fields), _mode(value_fields))
        case "DELETE_SUBJECT":
            if value_fields is None:
                return NoopRecord({})
            return DeleteSubjectRecord(
                _text(key_fields, "subject"), _number(value_fields, "version")
            )
        case "CLEAR_SUBJECT":
            return (
                NoopRecord({}) if value_fields is None else ClearSubjectRecord(_subject(key_fields))
            )
        case "CONTEXT":
            tenant = key_fields.get("tenant")
            return ContextRecord(
                _text(key_fields, "context"),
                tenant if isinstance(tenant, str) else "default",
                value_fields is not None,
            )
        case _:
            raise BadRecord(f"keytype {keytype!r} is not known")


def _object(data: bytes | None, what: str) -> dict[str, object]:
    if data is None:
        raise BadRecord(f"there is no {what}")
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRecord(f"the {what} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadRecord(f"the {what} is not a JSON object")
    return fields


def _schema_record(key: dict[str, object], value: dict[str, object] | None) -> SchemaRecord:
    magic = key.get("magic", 1)
    if magic not in (0, 1):
        raise BadRecord(f"a schema's key has magic {magic!r}, not 0 or 1")
    subject = whole_name(_text(key, "subject"))
    version = _number(key, "version", least=1)
    if value is None:
        return SchemaRecord(subject, version, None)
    schema = Schema(_text(value, "schema"), _kind(value), _references(value.get("references")))
    metadata, rule_set = _optional(value, "metadata"), _optional(value, "ruleSet")
    stored = StoredSchema(
        subject=subject,
        version=version,
        schema_id=_number(value, "id"),
        guid=guid_of(schema, metadata, rule_set),
        schema=schema,
        metadata=metadata,
        rule_set=rule_set,
        deleted=value.get("deleted") is True,
    )
    return SchemaRecord(subject, version, stored)


def _kind(value: dict[str, object]) -> SchemaKind:
    named = value.get("schemaType")
    if named is None:
        return SchemaKind.AVRO
    if not isinstance(named, str) or named not in SchemaKind.__members__:
        raise BadRecord(f"schemaType {named!r} is not known")
    return SchemaKind[named]


def _references(value: object) -> tuple[Reference, ...]:
    if not value:
        return ()
    if not isinstance(value, list):
        raise BadRecord("references are not a list")
    found = []
    for each in value:
        if not isinstance(each, dict):
            raise BadRecord("a reference is not a JSON object")
        version = _number(each, "version", least=-1)
        found.append(Reference(_text(each, "name"), _text(each, "subject"), version))
    return tuple(found)


def _config(value: dict[str, object]) -> SubjectConfig:
    fields = {name: each for name, each in value.items() if name != "subject"}
    level = fields.pop("compatibilityLevel", None)
    if level is None:
        return SubjectConfig(None, fields)
    if not isinstance(level, str) or level.upper() not in CompatibilityLevel.__members__:
        raise BadRecord(f"compatibilityLevel {level!r} is not known")
    return SubjectConfig(CompatibilityLevel[level.upper()], fields)


def _mode(value: dict[str, object] | None) -> Mode | None:
    if value is None:
        return None
    mode = value.get("mode")
    if not isinstance(mode, str) or mode not in Mode.__members__:
        raise BadRecord(f"mode {mode!r} is not known")
    return Mode[mode]


def _max_ids(value: bytes | None) -> dict[str, int]:
    if value is None:
        return {}
    given = _object(value, "value").get("maxIds")
    if not isinstance(given, dict):
        return {}
    return {context: _number(given, context) for context in given}


def _subject(key: dict[str, object]) -> str | None:
    return None if key.get("subject") is None else whole_name(_text(key, "subject"))


def _text(fields: dict[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise BadRecord(f'"{name}" is not a text')
    return value


def _number(fields: dict[str, object], name: str, least: int = 0) -> int:
    value = fields.get(name)
    if type(value) is not int or not least <= value <= NUMBER_MAX:
        raise BadRecord(f'"{name}" is not a number from {least} to {NUMBER_MAX}')
    return value


def _optional(fields: dict[str, object], name: str) -> JsonObject | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise BadRecord(f'"{name}" is not a JSON object')
    return value
