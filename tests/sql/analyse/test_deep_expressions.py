"""Expressions as deep as they can be read are typed, and soon."""

import pytest

from tests.sql.analyse.typing_scope import typed


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        (f"{'CASE WHEN B THEN 1 ELSE ' * 90}L{' END' * 90}", "BIGINT"),
        (f"{'CASE ' * 45}I{' WHEN 1 THEN 2 ELSE 3 END' * 45}", "INTEGER"),
        (f"{'ARRAY[' * 40}I{']' * 40}{'[1]' * 40}", "INTEGER"),
        (f"{'(' * 60}B{' IN (TRUE, FALSE))' * 60}", "BOOLEAN"),
        (" + ".join(["I"] * 150), "INTEGER"),
        (" OR ".join(["B"] * 2_000), "BOOLEAN"),
    ],
    ids=lambda text: text[:20],
)
def test_deep_expressions_are_typed(text: str, type_: str) -> None:
    assert str(typed(text).type) == type_
