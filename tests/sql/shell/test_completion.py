"""What the word before the cursor may become."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import to_plain_text

from sql.errors import StatementFailed
from sql.shell.completion import SourceNames, SqlCompleter
from sql.shell.session import EntityJson


def described(kind: str, name: str, **columns: str) -> EntityJson:
    fields = [{"name": each, "schema": {"type": columns[each]}} for each in columns]
    return {"sourceDescriptions": [{"name": name, "type": kind, "fields": fields}]}


ANSWERS = {
    "DESCRIBE STREAMS;": [described("STREAM", "ORDERS", ID="INT", AMOUNT="DOUBLE")],
    "DESCRIBE TABLES;": [described("TABLE", "CUSTOMERS", NAME="STRING")],
}


def completed(text: str, after: str = "") -> dict[str, str]:
    """Completions and what is said about them, with the cursor between two texts."""
    completer = SqlCompleter(SourceNames(ANSWERS.__getitem__))
    document = Document(text + after, len(text))
    found = completer.get_completions(document, CompleteEvent(completion_requested=True))
    return {each.text: to_plain_text(each.display_meta) for each in found}


@pytest.mark.parametrize(
    ("text", "after", "wanted"),
    [
        ("SELECT * FROM ", ";", {"ORDERS": "stream", "CUSTOMERS": "table"}),
        ("select * from ord", "", {"orders": "stream"}),
        ("SELECT * FROM a JOIN cu", "", {"customers": "table"}),
        ("DROP TABLE CU", "", {"CUSTOMERS": "table"}),
        ("SELECT AMO", " FROM orders;", {"AMOUNT": "DOUBLE of ORDERS"}),
        ("SELECT o.", " FROM orders AS o;", {"ID": "INT", "AMOUNT": "DOUBLE"}),
        ("SELECT c.N", " FROM orders o JOIN customers c ON 1;", {"NAME": "STRING"}),
        ("SELECT x.", " FROM orders AS o;", {}),
        ("SELECT 'AMO", " FROM orders;", {}),
        ("SHOW STREAMS; SELECT * FROM o", "", {"orders": "stream"}),
        ("DESCR", "", {"DESCRIBE": ""}),
        ("spo", "", {"spool": ""}),
        ("SELECT * FROM orders EM", "", {"EMIT": ""}),
    ],
)
def test_a_word_is_completed_by_what_stands_before_it(
    text: str, after: str, wanted: dict[str, str]
) -> None:
    assert completed(text, after) == wanted


def test_functions_come_with_their_signatures() -> None:
    found = completed("SELECT SUBS")
    assert found["SUBSTRING("].startswith("SUBSTRING(")
    assert "STRING" in found["SUBSTRING("]


def test_a_new_statement_begins_with_its_word() -> None:
    assert {"SELECT", "CREATE", "HELP"} <= set(completed(""))
    assert {"SELECT", "CREATE", "HELP"} <= set(completed("SHOW STREAMS; "))


def test_the_catalog_is_asked_again_only_after_a_change() -> None:
    asked: list[str] = []

    def execute(text: str) -> list[EntityJson]:
        asked.append(text)
        return ANSWERS[text]

    catalog = SourceNames(execute)
    assert set(catalog.sources) == {"ORDERS", "CUSTOMERS"}
    assert set(catalog.sources) == {"ORDERS", "CUSTOMERS"}
    assert len(asked) == 2
    catalog.forget()
    assert set(catalog.sources) == {"ORDERS", "CUSTOMERS"}
    assert len(asked) == 4


def test_a_server_without_an_answer_leaves_what_was_known() -> None:
    def execute(text: str) -> list[EntityJson]:
        raise StatementFailed("not now")

    assert SourceNames(execute).sources == {}
