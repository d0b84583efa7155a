"""Part: a JSON schema, split into parts of one kind each; a value must be valid for all of them.

true, {}                        no parts
false                           false
{"type": "string", ...}         string; with an "enum" beside it: enum and string
{"type": ["string", "null"]}    anyOf string, null
{"minLength": 3}                string, but only for strings: it is not `typed`
anyOf, oneOf, allOf             one part each, with alternatives under it
not, if                         not, if
$ref                            the parts of the referenced schema
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from broker.serde.schema.json_documents import Subschema, base_of
from broker.serde.schema.json_schema import Draft, JsonSchema

REFERENCES_MAX = 50
REFERENCE_WORDS = ("$ref", "$dynamicRef", "$recursiveRef")
COMBINED = ("allOf", "anyOf", "oneOf")
SUMS = frozenset(("anyOf", "oneOf"))
WITH_SIBLINGS = frozenset((Draft.DRAFT_2019_09, Draft.DRAFT_2020_12))
TYPES = frozenset(("string", "number", "integer", "boolean", "null", "object", "array"))

# The keywords that apply to values of one type, whether or not the type is given.
WORDS: dict[str, frozenset[str]] = {
    "array": frozenset(
        (
            *("items", "additionalItems", "prefixItems", "minItems", "maxItems", "uniqueItems"),
            *("contains", "minContains", "maxContains", "unevaluatedItems"),
        )
    ),
    "object": frozenset(
        (
            *("properties", "required", "minProperties", "maxProperties", "dependencies"),
            *("dependentRequired", "dependentSchemas", "patternProperties"),
            *("additionalProperties", "propertyNames", "unevaluatedProperties"),
        )
    ),
    "number": frozenset(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    ),
    "string": frozenset(("minLength", "maxLength", "pattern")),
}

Json = dict[str, object]
Key = tuple[int, str, bool]


@dataclass(frozen=True, slots=True)
class NestedSchema:
    """A schema within the schema that it belongs to."""

    schema: object
    base: str
    owner: JsonSchema

    def inner(self, schema: object) -> "NestedSchema":
        """A schema within this one."""
        return NestedSchema(schema, base_of(schema, self.base), self.owner)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of one kind; `words` are the keywords of the schema that it comes from."""

    kind: str
    node: NestedSchema
    words: Json = field(default_factory=dict)
    typed: bool = True
    integer: bool = False
    alternatives: tuple["tuple[Part, ...] | NestedSchema", ...] = ()

    @property
    def key(self) -> Key:
        """Its identity among other parts while its schema exists."""
        return id(self.node.schema), self.kind, self.integer

    def inner(self, word: str) -> NestedSchema | None:
        """The schema of a keyword; None if the keyword is missing."""
        found = self.words.get(word)
        return self.node.inner(found) if isinstance(found, dict | bool) else None

    def inner_by_name(self, word: str) -> dict[str, NestedSchema]:
        """The schemas of a keyword, by name."""
        found = self.words.get(word)
        if not isinstance(found, dict):
            return {}
        return {key: self.node.inner(each) for key, each in found.items()}


Parts = tuple[Part, ...]


def root_of(schema: JsonSchema) -> NestedSchema:
    """A node for a whole schema."""
    place = schema.documents.root
    return NestedSchema(place.schema, place.base, schema)


def parts_of(node: NestedSchema, references: int = 0) -> Parts:
    """The parts of a schema."""
    schema = node.schema
    if schema is False:
        return (Part("false", node),)
    if not isinstance(schema, dict) or references > REFERENCES_MAX:
        return ()
    word = next((each for each in REFERENCE_WORDS if isinstance(schema.get(each), str)), None)
    if word is None:
        return tuple(own_parts(node, schema))
    place = node.owner.documents.resolve(str(schema[word]), node.base)
    named = referenced(node, place, references)
    if node.owner.draft not in WITH_SIBLINGS:
        return named
    return (*named, *own_parts(node, schema))


def referenced(node: NestedSchema, place: Subschema | None, references: int) -> Parts:
    """The parts of the schema that a $ref names; an unknown one is only equal to itself."""
    if place is None:
        return (Part("reference", node, node.schema if isinstance(node.schema, dict) else {}),)
    return parts_of(NestedSchema(place.schema, place.base, node.owner), references + 1)


def own_parts(node: NestedSchema, schema: Json) -> Iterator[Part]:
    """The parts of the schema itself, without references."""
    if isinstance(schema.get("enum"), list) or "const" in schema:
        yield Part("enum", node, schema)
    for word in COMBINED:
        given = schema.get(word)
        if isinstance(given, list) and given:
            alternatives = tuple(node.inner(each) for each in given)
            yield Part(word, node, schema, alternatives=alternatives)
    if "not" in schema:
        yield Part("not", node, schema)
    if "if" in schema and ("then" in schema or "else" in schema):
        yield Part("if", node, schema)
    yield from type_parts(node, schema)


def type_parts(node: NestedSchema, schema: Json) -> Iterator[Part]:
    """The parts for the type of values, and for values of each type."""
    given = schema.get("type")
    if isinstance(given, str):
        yield typed(given, node, schema)
    elif isinstance(given, list) and given:
        names = [each for each in dict.fromkeys(map(str, given)) if each in TYPES]
        if len(names) == 1:
            yield typed(names[0], node, schema)
        else:
            alternatives = tuple((typed(each, node, schema),) for each in names)
            yield Part("anyOf", node, schema, alternatives=alternatives)
    else:
        for kind, words in WORDS.items():
            if not words.isdisjoint(schema):
                yield Part(kind, node, schema, typed=False)


def typed(name: str, node: NestedSchema, schema: Json) -> Part:
    """The part of a schema for one named type."""
    if name == "integer":
        return Part("number", node, schema, integer=True)
    return Part(name, node, schema)
