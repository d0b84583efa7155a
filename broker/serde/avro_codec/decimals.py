"""Decimals of Avro, read exactly and within limits.

fastavro rounds a decimal that has more digits than its schema allows, and takes minutes for one of
a million bytes. So decimals are read with a logical type of Millstream's own.
"""

from decimal import Context, Decimal

from fastavro import _read_py
from fastavro.read import LOGICAL_READERS

BYTES_MAX = 1_024
_LOGICAL_TYPE = "millstream-decimal"
_EXACT = Context(prec=3 * BYTES_MAX)  # more digits than the maximum of bytes can hold


def with_exact_decimals(parsed: object) -> object:
    """A schema parsed by fastavro, with Millstream's decimals; unchanged if it has none."""
    changed = _changed(parsed, {})
    return parsed if changed == parsed else changed


def _changed(value: object, done: dict[int, object]) -> object:
    if not isinstance(value, dict | list):
        return value
    # The branches of a union share one dictionary of names.
    if id(value) not in done:
        done[id(value)] = (
            {key: _changed(each, done) for key, each in value.items()}
            if isinstance(value, dict)
            else [_changed(each, done) for each in value]
        )
        found = done[id(value)]
        if isinstance(found, dict) and found.get("logicalType") == "decimal":
            found["logicalType"] = _LOGICAL_TYPE
    return done[id(value)]


def _read(
    data: bytes, writer_schema: dict[str, int], reader_schema: dict[str, int] | None = None
) -> Decimal:
    if len(data) > BYTES_MAX:
        raise ValueError(f"a decimal has {len(data)} bytes, but at most {BYTES_MAX} are allowed")
    unscaled = Decimal(int.from_bytes(data, "big", signed=True))
    return unscaled.scaleb(-writer_schema.get("scale", 0), _EXACT)


# Both implementations of fastavro have their own table.
for _readers in (LOGICAL_READERS, _read_py.LOGICAL_READERS):
    _readers[f"bytes-{_LOGICAL_TYPE}"] = _read
    _readers[f"fixed-{_LOGICAL_TYPE}"] = _read
