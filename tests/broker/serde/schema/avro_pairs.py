"""Pairs of Avro schemas for tests: a schema and the same schema after some edits."""

import copy
from random import Random

from hypothesis import strategies as st

Json = dict[str, object]

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS: Json = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2,
    "float": 0.5,
    "double": 1.5,
    "bytes": "b",
    "string": "s",
}
NAMES = ("a", "b", "c", "d")


def schemas() -> st.SearchStrategy[Json]:
    """Records with a few fields of all kinds of types; named types are numbered."""
    return st.randoms(use_true_random=False).map(lambda random: record(random, [0], 2))


def pairs() -> st.SearchStrategy[tuple[Json, Json]]:
    """A schema and what became of it."""
    return st.randoms(use_true_random=False).map(pair)


def pair(random: Random) -> tuple[Json, Json]:
    """A schema and the same after one to three edits."""
    old = record(random, [0], 2)
    new = copy.deepcopy(old)
    for _ in range(random.randint(1, 3)):
        edit(new, random)
    return old, new


def record(random: Random, count: list[int], depth: int) -> Json:
    """A record with up to four fields."""
    count[0] += 1
    found: Json = {"type": "record", "name": f"N{count[0]}"}
    names = random.sample(NAMES, random.randint(0, len(NAMES)))
    found["fields"] = [field(name, random, count, depth) for name in names]
    return found


def field(name: str, random: Random, count: list[int], depth: int) -> Json:
    """A field; one of a primitive type may have a default."""
    kind = any_type(random, count, depth)
    found: Json = {"name": name, "type": kind}
    if isinstance(kind, str) and random.random() < 0.5:
        found["default"] = DEFAULTS[kind]
    return found


def any_type(random: Random, count: list[int], depth: int) -> object:
    """Any type, not too deep."""
    choice = random.randint(0, 9) if depth else random.randint(0, 6)
    count[0] += 1
    if choice < 5:
        return random.choice(PRIMITIVES)
    if choice == 5:
        symbols = random.sample("ABC", random.randint(1, 3))
        return {"type": "enum", "name": f"N{count[0]}", "symbols": symbols}
    if choice == 6:
        return {"type": "fixed", "name": f"N{count[0]}", "size": random.randint(1, 3)}
    if choice == 7:
        inner = any_type(random, count, depth - 1)
        return random.choice(({"type": "array", "items": inner}, {"type": "map", "values": inner}))
    if choice == 8:
        return random.sample(PRIMITIVES, random.randint(1, 4))
    return record(random, count, depth - 1)


def edit(schema: Json, random: Random) -> None:
    """Change something in a record or in a record inside it."""
    fields = schema["fields"]
    assert isinstance(fields, list)
    inner = [each["type"] for each in fields if isinstance(each["type"], dict)]
    records = [each for each in inner if each["type"] == "record"]
    if records and random.random() < 0.4:
        return edit(random.choice(records), random)
    choice = random.randint(0, 5)
    if choice == 0 or not fields:
        free = [name for name in NAMES if name not in {each["name"] for each in fields}]
        if free:
            fields.append(field(random.choice(free), random, [100 + random.randint(0, 999)], 0))
    elif choice == 1:
        fields.remove(random.choice(fields))
    elif choice == 2:
        random.shuffle(fields)
    elif choice == 3:
        schema["name"], schema["aliases"] = f"{schema['name']}x", [schema["name"]]
    else:
        edit_type(random.choice(fields), random)
    return None


def edit_type(given: Json, random: Random) -> None:
    """Change the type of a field."""
    kind = given["type"]
    given.pop("default", None)
    if isinstance(kind, str):
        given["type"] = random.choice((random.choice(PRIMITIVES), ["boolean", "long", "string"]))
    elif isinstance(kind, list):
        random.shuffle(kind)
        given["type"] = kind[:3]
    elif isinstance(kind, dict) and kind["type"] == "enum":
        kind["symbols"] = random.sample("ABC", random.randint(1, 3))
        kind.pop("default", None)
        if random.random() < 0.5:
            kind["default"] = kind["symbols"][0]
    elif isinstance(kind, dict) and kind["type"] == "fixed":
        kind["size"] = random.randint(1, 3)
