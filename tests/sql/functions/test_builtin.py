"""All built-in functions together."""

from random import Random

import pytest

from broker.machine import Machine
from sql.functions.builtin import builtin_functions
from sql.functions.registry import Function
from tests.sql.functions.calls import call

NAMES = {
    "numbers": """
        ABS ACOS ASIN ATAN ATAN2 CBRT CEIL COS COSH COT DEGREES EXP FLOOR GEO_DISTANCE GREATEST
        LEAST LN LOG PI POWER RADIANS RANDOM ROUND SIGN SIN SINH SQRT TAN TANH TRUNC
    """,
    "texts": """
        BIGINT_FROM_BYTES CHR CONCAT CONCAT_WS DOUBLE_FROM_BYTES ELT ENCODE FIELD FROM_BYTES
        INITCAP INSTR INT_FROM_BYTES LCASE LEN LPAD MASK MASK_KEEP_LEFT MASK_KEEP_RIGHT MASK_LEFT
        MASK_RIGHT MD5 REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_REPLACE REGEXP_SPLIT_TO_ARRAY
        REPLACE RPAD SPLIT SPLIT_TO_MAP SUBSTRING TO_BYTES TRIM UCASE URL_DECODE_PARAM
        URL_ENCODE_PARAM URL_EXTRACT_FRAGMENT URL_EXTRACT_HOST URL_EXTRACT_PARAMETER
        URL_EXTRACT_PATH URL_EXTRACT_PORT URL_EXTRACT_PROTOCOL URL_EXTRACT_QUERY UUID
    """,
    "collections": """
        ARRAY_CONCAT ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_JOIN
        ARRAY_LENGTH ARRAY_MAX ARRAY_MIN ARRAY_REMOVE ARRAY_SORT ARRAY_UNION AS_MAP AS_VALUE
        ENTRIES FILTER GENERATE_SERIES MAP_KEYS MAP_UNION MAP_VALUES REDUCE SLICE TRANSFORM
    """,
    "documents": """
        EXTRACTJSONFIELD IS_JSON_STRING JSON_ARRAY_CONTAINS JSON_ARRAY_LENGTH JSON_CONCAT
        JSON_ITEMS JSON_KEYS JSON_RECORDS TO_JSON_STRING
    """,
    "nulls": "COALESCE IFNULL NULLIF",
    "times": """
        CONVERT_TZ DATEADD DATESUB DATETOSTRING FORMAT_DATE FORMAT_TIME FORMAT_TIMESTAMP FROM_DAYS
        FROM_UNIXTIME PARSE_DATE PARSE_TIME PARSE_TIMESTAMP STRINGTODATE STRINGTOTIMESTAMP TIMEADD
        TIMESTAMPADD TIMESTAMPSUB TIMESTAMPTOSTRING TIMESUB UNIX_DATE UNIX_TIMESTAMP
    """,
    "aggregates": """
        ATTR AVG COLLECT_LIST COLLECT_SET CORRELATION COUNT COUNT_DISTINCT EARLIEST_BY_OFFSET
        HISTOGRAM LATEST_BY_OFFSET MAX MIN STDDEV_SAMP STDDEV_SAMPLE SUM SUM_LIST TOPK
        TOPKDISTINCT
    """,
    "tables": "CUBE_EXPLODE EXPLODE",
}


@pytest.mark.parametrize("family", NAMES)
def test_every_function_of_ksqldb_is_there(family: str) -> None:
    known = builtin_functions()
    assert [name for name in NAMES[family].split() if name not in known] == []


def test_there_are_149_functions_and_no_others() -> None:
    wanted = {name for names in NAMES.values() for name in names.split()}
    assert len(wanted) == 149
    assert {each.name for each in builtin_functions()} == wanted


@pytest.mark.parametrize("function", list(builtin_functions()), ids=lambda each: each.name)
def test_a_function_says_what_it_does(function: Function) -> None:
    assert function.description.endswith(".")
    assert function.category
    shown = [str(each.signature) for each in function.overloads]
    assert len(set(shown)) == len(shown)


def test_the_registry_is_made_once() -> None:
    assert builtin_functions() is builtin_functions()


def test_random_numbers_and_identifiers_come_from_the_machine() -> None:
    def drawn(machine: Machine) -> list[object]:
        return [call(name, machine=machine) for name in ("RANDOM", "UUID", "RANDOM", "UUID")]

    assert drawn(Machine(random=Random(1))) == drawn(Machine(random=Random(1)))
    assert drawn(Machine(random=Random(1))) != drawn(Machine(random=Random(2)))
