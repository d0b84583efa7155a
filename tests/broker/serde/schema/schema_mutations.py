"""Broken schemas for tests: any text, and texts of schemas where something was changed."""

import json

from hypothesis import strategies as st

WORDS = ("type", "name", "fields", "items", "symbols", "size", "default", "$ref", "$id", "enum")
JSON_VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def broken_texts(samples: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Any text, any JSON, and samples with a piece exchanged, cut off or doubled."""
    return st.one_of(
        st.text(max_size=50),
        JSON_VALUES.map(json.dumps),
        st.builds(exchanged, st.sampled_from(samples), st.integers(0, 60), JSON_VALUES),
        st.builds(lambda text, at: text[:at], st.sampled_from(samples), st.integers(0, 300)),
    )


def exchanged(sample: str, at: int, value: object) -> str:
    """The sample, where one of its values is another one."""
    root: list[object] = [json.loads(sample)]
    places: list[tuple[object, object]] = [(root, 0)]
    for container, key in places:
        inner = container[key]  # type: ignore[index]
        if isinstance(inner, dict):
            places.extend((inner, each) for each in list(inner))
        elif isinstance(inner, list):
            places.extend((inner, each) for each in range(len(inner)))
    container, key = places[at % len(places)]
    container[key] = value  # type: ignore[index]
    return json.dumps(root[0])
