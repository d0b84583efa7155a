"""Registering and finding: which id and version a schema gets."""

import hashlib
import uuid

import pytest

from broker.registry.registry import Registry
from broker.registry.values import Mode, SubjectConfig, SubjectVersion
from broker.serde.registry.api import SchemaRegistry
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import Schema, SchemaKind
from tests.broker.registry.examples import record, referring, refused, strict


def test_ids_ascend_and_one_schema_has_one_id_in_all_subjects(registry: Registry) -> None:
    assert registry.register("a", record("x")) == 1
    assert registry.register("a", record("x", "y")) == 2
    assert registry.register("b", record("x", "y")) == 2
    assert registry.register("b", record("z")) == 3
    assert registry.versions_of(2) == [SubjectVersion("a", 2), SubjectVersion("b", 1)]
    assert registry.subjects_of(2) == ["a", "b"]


def test_registering_again_finds_the_version_that_is_there(registry: Registry) -> None:
    first = registry.add("a", record("x"))
    registry.add("a", record("x", "y"))
    assert registry.add("a", record("x")) == first
    assert registry.versions("a") == [1, 2]


def test_the_stored_text_is_canonical_and_finds_what_was_written_otherwise(
    registry: Registry,
) -> None:
    spaced = Schema('{ "type": "record",  "name": "A", "fields": [ ] }')
    stored = registry.add("a", spaced)
    assert stored.schema.text == '{"type":"record","name":"A","fields":[]}'
    assert registry.find("a", spaced) == stored
    assert registry.find("a", stored.schema) == stored
    assert registry.parsed(stored).record_name() == "A"


def test_normalizing_makes_equal_meanings_equal(registry: Registry) -> None:
    plain = Schema('{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]}')
    wordy = Schema('{"name":"A","fields":[{"type":{"type":"int"},"name":"x"}],"type":"record"}')
    assert registry.register("a", plain, normalize=True) == 1
    assert registry.register("a", wordy, normalize=True) == 1
    registry.set_config("b", SubjectConfig(fields={"normalize": True}))
    assert registry.register("b", wordy) == 1


def test_a_schema_that_is_none_is_refused(registry: Registry) -> None:
    with refused(42201):
        registry.register("a", Schema('{"type":"nonsense"}'))
    with refused(42201):
        registry.register("a", Schema('"string\ud800"'))
    with refused(42201, "Empty schema"):
        registry.register("a", Schema(" "))
    assert registry.subjects() == []


def test_an_incompatible_schema_is_refused_with_its_reasons(registry: Registry) -> None:
    registry.register("a", strict("x"))
    with refused(40901) as _:
        registry.register("a", strict("x", "y"))
    reasons = registry.check("a", strict("x", "y"))
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in reasons[0]
    assert reasons[-1] == "{validateFields: 'false', compatibility: 'BACKWARD'}"
    assert registry.versions("a") == [1]


def test_another_language_is_incompatible_unless_nothing_is_asked(registry: Registry) -> None:
    registry.register("a", record("x"))
    json_schema = Schema('{"type":"object"}', SchemaKind.JSON)
    with refused(40901):
        registry.register("a", json_schema)
    registry.set_level("a", CompatibilityLevel.NONE)
    assert registry.register("a", json_schema) == 2


def test_a_check_compares_with_one_version_or_with_what_the_level_asks_for(
    registry: Registry,
) -> None:
    registry.set_level("a", CompatibilityLevel.NONE)
    registry.register("a", strict("x"))
    registry.register("a", strict("y"))
    registry.set_level("a", CompatibilityLevel.BACKWARD)
    assert registry.check("a", strict("y")) == []
    assert registry.check("a", strict("y"), 1) != []
    registry.set_level("a", CompatibilityLevel.BACKWARD_TRANSITIVE)
    assert registry.check("a", strict("y")) != []
    assert registry.check("new", strict("y")) == []
    assert registry.check("new", strict("y"), -1) == []
    with refused(40402, "Version 9 not found."):
        registry.check("a", strict("y"), 9)
    with refused(40402, "Version 1 not found."):
        registry.check("new", strict("y"), 1)


def test_looking_up_says_what_is_missing(registry: Registry) -> None:
    with refused(40401, "Subject 'a' not found."):
        registry.find("a", record("x"))
    registry.register("a", record("x"))
    with refused(40403, "Schema not found"):
        registry.lookup("a", record("y"))
    with refused(40401, "Subject 'b' not found."):
        registry.version("b")
    with refused(40402, "Version 7 not found."):
        registry.version("a", 7)
    with refused(42202):
        registry.version("a", 0)
    with refused(40403, "Schema 12 not found"):
        registry.schema(12)
    with refused(40403, "Schema ffff not found"):
        registry.by_guid("ffff")


def test_serdes_get_what_they_ask_for(registry: Registry) -> None:
    client: SchemaRegistry = registry
    schema_id = client.register("a", record("x"))
    assert client.schema(schema_id) == record("x")
    assert client.schema(schema_id, subject="elsewhere") == record("x")
    found = client.lookup("a", record("x"))
    assert (found.subject, found.version, found.schema_id) == ("a", 1, schema_id)
    assert client.version("a") == found


def test_a_schema_is_found_by_its_guid_in_any_context(registry: Registry) -> None:
    stored = registry.add(":.c:a", record("x"))
    assert stored.guid == str(uuid.UUID(bytes=hashlib.md5(record("x").text.encode()).digest()))
    assert registry.by_guid(stored.guid.upper()) == stored


def test_metadata_and_rules_make_another_schema_and_are_inherited(registry: Registry) -> None:
    owner = {"properties": {"owner": "shop"}}
    rules = {"domainRules": [{"name": "r", "type": "CEL", "expr": "true"}]}
    assert registry.add("a", record("x")).schema_id == 1
    marked = registry.add("a", record("x"), metadata=owner, rule_set=rules)
    assert (marked.schema_id, marked.version) == (2, 2)
    grown = registry.add("a", record("x", "y"))
    assert (grown.metadata, grown.rule_set) == (owner, rules)
    assert registry.find("a", record("x", "y")) == grown
    assert registry.add("b", record("x"), metadata=owner, rule_set=rules).schema_id == 2


def test_the_configuration_adds_metadata_to_what_is_registered(registry: Registry) -> None:
    fields = {
        "defaultMetadata": {"properties": {"owner": "none", "team": "t"}},
        "overrideMetadata": {"properties": {"checked": "yes"}, "sensitive": ["owner"]},
        "defaultRuleSet": {"domainRules": [{"name": "r", "type": "CEL"}]},
    }
    registry.set_config("a", SubjectConfig(fields=fields))
    stored = registry.add("a", record("x"), metadata={"properties": {"owner": "shop"}})
    assert stored.metadata == {
        "properties": {"owner": "shop", "team": "t", "checked": "yes"},
        "sensitive": ["owner"],
    }
    assert stored.rule_set == fields["defaultRuleSet"]


def test_a_version_that_is_asked_for_is_numbered_in_its_metadata(registry: Registry) -> None:
    registry.add("a", record("x"))
    second = registry.add("a", record("x"), version=2)
    assert second.metadata == {"properties": {"confluent:version": "2"}}
    with refused(42201):
        registry.add("a", record("y"), version=7)


def test_compatibility_groups_are_compared_by_themselves(registry: Registry) -> None:
    registry.set_config("a", SubjectConfig(fields={"compatibilityGroup": "major"}))
    one, two = ({"properties": {"major": each}} for each in "12")
    registry.add("a", strict("x"), metadata=one)
    registry.add("a", strict("y"), metadata=two)
    with refused(40901):
        registry.add("a", strict("z"), metadata=two)


def test_contexts_have_their_own_ids(registry: Registry) -> None:
    assert registry.register("a", record("x")) == 1
    assert registry.register("a", record("y")) == 2
    assert registry.register(":.c:a", record("y")) == 1
    assert registry.contexts() == [".", ".c"]
    assert registry.schema(1, subject=":.c:a") == record("y")
    assert registry.schema(1, subject=":.c:") == record("y")
    assert registry.schema(1) == record("x")
    assert (registry.max_id(), registry.max_id(subject=":.c:")) == (2, 1)
    with refused(40403):
        registry.by_id(2, subject=":.c:a")


def test_a_subject_without_a_context_is_found_in_another(registry: Registry) -> None:
    registry.register("other", record("x"))
    registry.register(":.c:a", record("y"))
    assert registry.version("a").subject == ":.c:a"
    assert registry.find("a", record("y")).subject == ":.c:a"
    assert registry.by_id(1, subject="a").subject == ":.c:a"
    assert registry.by_id(1, subject="unknown").subject == "other"


def test_subjects_are_listed_by_prefix_and_page(registry: Registry) -> None:
    for subject in ("b", "a1", "a2", ":.c:a3", ":.d:b"):
        registry.register(subject, record("x"))
    registry.delete_subject("a2")
    assert registry.subjects() == [":.c:a3", ":.d:b", "a1", "b"]
    assert registry.subjects(prefix="") == ["a1", "b"]
    assert registry.subjects(prefix="a", deleted=True) == ["a1", "a2"]
    assert registry.subjects(prefix="a", deleted_only=True) == ["a2"]
    assert registry.subjects(prefix=":*:a") == [":.c:a3", "a1"]
    assert registry.subjects(prefix=":.d:") == [":.d:b"]
    assert registry.subjects(offset=1, limit=2) == [":.d:b", "a1"]
    assert registry.subjects(limit=0) == registry.subjects()


def test_all_schemas_or_the_latest_of_each_subject(registry: Registry) -> None:
    for fields in ("x", "xy", "xyz"):
        registry.register("a", record(*fields))
    registry.register("b", record("x"))
    registry.delete_version("a", 3)
    places = [(each.subject, each.version) for each in registry.all_schemas()]
    assert places == [("a", 1), ("a", 2), ("b", 1)]
    latest = registry.all_schemas(latest_only=True, limit=1)
    assert [(each.subject, each.version) for each in latest] == [("a", 2)]
    assert len(registry.all_schemas(deleted=True)) == 4
    assert registry.versions("a", deleted_only=True) == [3]
    assert registry.versions("a", deleted=True, offset=1) == [2, 3]


@pytest.mark.parametrize("subject", ["a\n", "__GLOBAL", ":.c:__EMPTY", ":.__GLOBAL:a", "\ud800"])
def test_a_name_that_no_subject_can_have_is_refused(registry: Registry, subject: str) -> None:
    with refused(42208, f"The specified subject '{subject}' is not a valid subject."):
        registry.register(subject, record("x"))


def test_the_default_context_may_be_written_out(registry: Registry) -> None:
    assert registry.add(":.:a", record("x")).subject == "a"
    assert registry.version(":.:a").subject == "a"


def test_a_schema_larger_than_a_record_can_be_is_refused(registry: Registry) -> None:
    doc = "d" * 1_000_000
    huge = Schema(f'{{"type":"record","name":"A","doc":"{doc}","fields":[]}}')
    with refused(42209, "Write failed because schema is too large"):
        registry.register("a", huge)
    assert registry.register("a", record("x")) == 1


def test_importing_takes_ids_and_versions_as_they_are(registry: Registry) -> None:
    with refused(42205, "Subject a in context  is not in import mode"):
        registry.add("a", record("x"), schema_id=100, version=5)
    registry.set_mode("a", Mode.IMPORT)
    with refused(42205, "Subject a in context  is not in read-write mode"):
        registry.add("a", record("x"))
    stored = registry.add("a", record("x"), schema_id=100, version=5)
    assert (stored.schema_id, stored.version) == (100, 5)
    assert registry.add("a", strict("y"), schema_id=90, version=3).version == 3
    assert registry.versions("a") == [3, 5]
    assert registry.version("a").version == 5
    with refused(42205, "Overwrite new schema with id 100 in context  is not permitted."):
        registry.add("a", record("z"), schema_id=100)
    for schema_id in (-1, 1 << 31):
        with refused(42205):
            registry.add("a", record("z"), schema_id=schema_id)
    with refused(42202):
        registry.add("a", record("z"), schema_id=7, version=1 << 31)
    registry.set_mode("a", Mode.READWRITE)
    assert registry.register("a", record("x", "y")) == 101


def test_no_id_comes_after_the_last_one(registry: Registry) -> None:
    registry.set_mode("a", Mode.IMPORT)
    registry.add("a", record("x"), schema_id=(1 << 31) - 1)
    with refused(50001):
        registry.register("b", record("y"))
    assert registry.register("b", record("x")) == (1 << 31) - 1


def test_an_avro_schema_with_its_references_written_out_is_the_one_that_refers(
    registry: Registry,
) -> None:
    registry.register("inner", record("x", name="Inner"))
    outer = registry.add("outer", referring("Inner", "inner", 1))
    written_out = Schema(registry.parsed(outer).formatted("resolved"))
    assert registry.add("outer", written_out) == outer
    assert registry.find("outer", written_out) == outer
