"""Messages for property tests, made from the declarations themselves."""

from dataclasses import fields
from typing import cast

from hypothesis import strategies as st

from broker.errors import ErrorCode
from broker.protocol.wire import SPECS, Wire

# Kio turns some numbers into times; these are times in its eyes and numbers in ours.
SMALL_LONGS = st.integers(0, 1 << 40)
ERROR_CODES = st.sampled_from([int(code) for code in ErrorCode])
INTEGERS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
OTHERS: dict[str, st.SearchStrategy[object]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=6),
    "bytes": st.binary(max_size=6),
    "records": st.binary(max_size=40),
}


def primitive(kind: str, name: str, *, modest: bool) -> st.SearchStrategy[object]:
    if kind not in INTEGERS:
        return OTHERS[kind]
    if modest and name.endswith("error_code"):
        return ERROR_CODES
    if modest and kind == "int64":
        return SMALL_LONGS
    return st.integers(*INTEGERS[kind])


def value(name: str, wire: Wire, version: int, *, modest: bool) -> st.SearchStrategy[object]:
    found: st.SearchStrategy[object]
    if wire.kind == "array":
        if isinstance(wire.element, str):
            element = primitive(wire.element, name, modest=modest)
        else:
            element = message(cast("type[object]", wire.element), version, modest=modest)
        found = st.lists(element, max_size=2)
    elif wire.kind == "struct":
        found = message(cast("type[object]", wire.element), version, modest=modest)
    else:
        found = primitive(wire.kind, name, modest=modest)
    return st.none() | found if version in wire.nullable else found


def message(cls: type[object], version: int, *, modest: bool) -> st.SearchStrategy[object]:
    """A message with every field that the version carries; the others keep their defaults.

    A modest message holds what another codec can also hold: known error codes, times of our age.
    """
    carried = {
        item.name: value(item.name, item.metadata["wire"], version, modest=modest)
        for item in fields(cls)  # type: ignore[arg-type]  # every message class is a dataclass
        if version in item.metadata["wire"].versions
    }
    return st.builds(cls, **carried)


def versions(cls: type[object]) -> range:
    spec = SPECS[cls].versions
    return range(spec.first, spec.last + 1)
