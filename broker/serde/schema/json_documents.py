"""JsonDocuments: resolves the $refs of a JSON schema, in its own text or in its references.

A reference is identified by its name in the text: `customer.json` matches every address that ends
with it, because an $id may have changed the name to an absolute address. Nothing is ever fetched.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urldefrag, urljoin

# The default address of a text, needed only to join relative addresses.
HERE = "file:///"


@dataclass(frozen=True, slots=True)
class Subschema:
    """A schema in a document, and the base address of its relative $refs."""

    schema: object
    base: str


class JsonDocuments:
    """A schema and its references, by address."""

    def __init__(self, root: object, references: dict[str, object]) -> None:
        """Index the addresses of the documents and of their parts."""
        self.root = Subschema(root, base_of(root, HERE))
        self._references = references
        self._places: dict[str, Subschema] = {}
        self._note(root, HERE)
        for name, document in references.items():
            self._note(document, joined(HERE, name))

    def named(self, address: str) -> object:
        """The document of a reference, by its absolute address; None if unknown."""
        for name, document in self._references.items():
            short = name.removeprefix("./").lstrip("/")
            if address == name or (short and address.endswith(f"/{short}")):
                return document
        place = self._places.get(address)
        return None if place is None else place.schema

    def resolve(self, reference: str, base: str) -> Subschema | None:
        """The target of a $ref; None if there is none."""
        address = joined(base, reference)
        if address in self._places:
            return self._places[address]
        document, _, fragment = address.partition("#")
        place = self._places.get(document)
        if place is None:
            found = self.named(document)
            if found is None:
                return None
            place = Subschema(found, base_of(found, document))
        if not fragment:
            return place
        return follow(place, unquote(fragment)) if fragment.startswith("/") else None

    def _note(self, document: object, base: str) -> None:
        self._places.setdefault(base, Subschema(document, base_of(document, base)))
        for place in parts(document, base):
            self._places.setdefault(place.base, place)
            for word in ("$anchor", "$dynamicAnchor", "$id", "id"):
                anchor = place.schema.get(word) if isinstance(place.schema, dict) else None
                if not isinstance(anchor, str):
                    continue
                if not word.endswith("id"):
                    anchor = f"#{anchor}"
                if anchor.startswith("#"):
                    self._places.setdefault(f"{place.base}{anchor}", place)


def parts(document: object, base: str) -> Iterator[Subschema]:
    """All objects of a document with their base addresses, outermost first."""
    waiting = [Subschema(document, base)]
    while waiting:
        place = waiting.pop()
        if isinstance(place.schema, list):
            waiting.extend(Subschema(each, place.base) for each in place.schema)
        if isinstance(place.schema, dict):
            inner = base_of(place.schema, place.base)
            yield Subschema(place.schema, inner)
            waiting.extend(Subschema(each, inner) for each in place.schema.values())


def base_of(schema: object, base: str) -> str:
    """The base address inside a schema: its own $id, if it has one."""
    if not isinstance(schema, dict):
        return base
    given = schema.get("$id", schema.get("id"))
    if not isinstance(given, str) or given.startswith("#"):
        return base
    return urldefrag(joined(base, given)).url


def joined(base: str, reference: str) -> str:
    """The absolute form of an address."""
    try:
        return urljoin(base, reference)
    except ValueError:  # an invalid host in brackets
        return reference


def follow(place: Subschema, pointer: str) -> Subschema | None:
    """The target of a JSON pointer in a document."""
    schema, base = place.schema, place.base
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, dict) and key in schema:
            schema = schema[key]
        elif isinstance(schema, list) and key.isascii() and key.isdigit() and len(key) < 10:
            if int(key) >= len(schema):
                return None
            schema = schema[int(key)]
        else:
            return None
        base = base_of(schema, base)
    return Subschema(schema, base)
