"""What the shell makes of a text before anything is sent."""

import pytest

from sql.shell.statements import is_finished, shell_input, with_semicolon


@pytest.mark.parametrize(
    "text",
    [
        *("", "  \n", "-- only a comment", "SHOW STREAMS;", "SELECT ';' FROM a;\n", "help", "Exit"),
        *("set cli wrap off", "run script 'a.sql'", "SHOW STREAMS; -- all of them"),
        *("help create table", "SHOW STREAMS; history", "request-pipelining ON", "server http://a"),
    ],
)
def test_enter_carries_out_what_is_whole(text: str) -> None:
    assert is_finished(text)


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT", "SELECT ';'", "SHOW STREAMS; SELECT 1", "CREATE STREAM a -- b;"),
        *("SET 'a' = 'b'", "helper", "SELECT /* ;", "INSERT INTO a VALUES (';"),
    ],
)
def test_enter_begins_a_new_line_until_then(text: str) -> None:
    assert not is_finished(text)


@pytest.mark.parametrize(
    ("text", "push"),
    [
        ("SELECT * FROM a EMIT CHANGES;", True),
        ("select * from a emit\n final;", True),
        ("SELECT * FROM a;", False),
        ("SELECT 'EMIT CHANGES' FROM a;", False),
        ("SELECT emit, changes FROM a; -- EMIT CHANGES", False),
    ],
)
def test_a_push_query_is_known_by_its_emit(text: str, push: bool) -> None:
    assert shell_input(text).is_push is push


def test_comments_before_a_statement_are_no_part_of_it() -> None:
    asked = shell_input("-- first\n/* second */ Output\tjson ;")
    assert asked.is_command
    assert asked.words == ("OUTPUT", "JSON")
    assert asked.argument == "json"


def test_a_missing_semicolon_never_becomes_part_of_a_comment() -> None:
    assert with_semicolon("SHOW STREAMS") == "SHOW STREAMS;"
    assert with_semicolon("SHOW STREAMS -- all") == "SHOW STREAMS -- all\n;"
