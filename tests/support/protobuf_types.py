"""Hypothesis strategies of column types that Protobuf supports."""

from hypothesis import strategies as st

from sql.datatypes import STRING, ArrayType, DataType, Field, MapType, StructType
from tests.support.columns import PLAIN_NAMES, scalar_types


def protobuf_types() -> st.SearchStrategy[DataType]:
    """Types of every kind, except arrays and maps as direct elements of an array."""

    def compound(parts: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        fields = st.lists(
            st.builds(Field, PLAIN_NAMES, parts),
            min_size=1,
            max_size=3,
            unique_by=lambda field: field.name.upper(),
        )
        single = parts.filter(lambda each: not isinstance(each, ArrayType | MapType))
        return st.one_of(
            st.builds(ArrayType, single),
            st.builds(MapType, st.just(STRING), parts),
            st.builds(StructType, fields.map(tuple)),
        )

    return st.recursive(scalar_types(), compound, max_leaves=4)
