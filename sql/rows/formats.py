"""All row formats by their SQL names."""

from collections.abc import Callable

from broker.errors import SchemaError
from sql.rows.delimited_rows import DelimitedRows
from sql.rows.json_rows import JsonRows
from sql.rows.kafka_rows import KafkaRows
from sql.rows.none_rows import NoneRows
from sql.rows.row_format import RowFormat


def format_of(name: str) -> RowFormat:
    """The format with a name, ignoring case; SchemaError lists the names if it is unknown."""
    make = FORMATS.get(name.upper())
    if make is None:
        raise SchemaError(
            f'unknown format "{name}"', hint=f"formats are {', '.join(sorted(FORMATS))}"
        )
    return make()


# Formats with schemas are imported on demand: most programs do not need their libraries.
def _avro() -> RowFormat:
    from sql.rows.avro_rows import AvroRows

    return AvroRows()


def _json_sr() -> RowFormat:
    from sql.rows.json_sr_rows import JsonSrRows

    return JsonSrRows()


def _protobuf() -> RowFormat:
    from sql.rows.protobuf_rows import ProtobufRows

    return ProtobufRows()


def _protobuf_nosr() -> RowFormat:
    from sql.rows.protobuf_rows import ProtobufNosrRows

    return ProtobufNosrRows()


FORMATS: dict[str, Callable[[], RowFormat]] = {
    "AVRO": _avro,
    "DELIMITED": DelimitedRows,
    "JSON": JsonRows,
    "JSON_SR": _json_sr,
    "KAFKA": KafkaRows,
    "NONE": NoneRows,
    "PROTOBUF": _protobuf,
    "PROTOBUF_NOSR": _protobuf_nosr,
}
