"""Statements that cannot be carried out say so in ksqlDB's words; the cases are data."""

import json

import pytest

from sql.errors import SqlError
from tests.sql.planner.golden import CASES
from tests.sql.planner.session import Session

ALL = [
    (f"{file.stem}/{case['id']}", case["statements"], case["error"])
    for file in sorted(CASES.glob("errors_*.json"))
    for case in json.loads(file.read_text())["cases"]
]


@pytest.mark.parametrize(
    ("statements", "error"), [each[1:] for each in ALL], ids=[each[0] for each in ALL]
)
def test_the_last_statement_is_refused(statements: list[str], error: str) -> None:
    session = Session().run("\n".join(statements[:-1]))
    with pytest.raises(SqlError) as refusal:
        session.run(statements[-1])
    assert error in refusal.value.message


def test_every_refusal_has_a_name_of_its_own() -> None:
    assert len({each[0] for each in ALL}) == len(ALL)
