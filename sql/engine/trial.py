"""Trial: validates a request in a sandbox, before any of it is executed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sql.engine.changes import COMMANDS, EngineState, named
from sql.engine.commands import Commands
from sql.engine.insert_records import RecordBuilder
from sql.engine.preparing import PreparedCommand, Sandbox
from sql.engine.session import SESSION_STATEMENTS, SqlSession
from sql.errors import StatementFailed
from sql.parse import ParsedStatement
from sql.syntax import statements as st


class WrongEndpoint(StatementFailed):
    """A query where other statements are expected, or vice versa; ksqlDB's error 40002."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Validates a request in a sandbox, so that all of it is executed or nothing."""

    commands: Commands
    session: SqlSession
    sandbox: Sandbox
    # The running push queries: TERMINATE ends them without a command.
    push_queries: Mapping[str, object]
    record_builder: Callable[[EngineState, SqlSession], RecordBuilder]
    headless: bool = False

    def run(self, parsed: ParsedStatement) -> PreparedCommand | None:
        """Validate a statement, and prepare it if it is a command.

        Statements that only show something are not validated.
        """
        statement = parsed.statement
        if self.headless:
            check_headless(parsed)
        if isinstance(statement, SESSION_STATEMENTS):
            self.session.change(self.sandbox.config, statement)
        elif isinstance(statement, COMMANDS):
            if not self._ends_push_query(statement):
                properties = dict(self.session.properties)
                return self.commands.prepared(self.sandbox, statement, parsed.text, properties)
        elif isinstance(statement, st.InsertValues):
            record_builder = self.record_builder(self.sandbox.state, self.session)
            record_builder.target(statement.target)
        elif isinstance(statement, REFUSED):
            raise wrong_statement(statement)
        return None

    def _ends_push_query(self, statement: st.Statement) -> bool:
        return (
            isinstance(statement, st.ControlQuery)
            and statement.query_id is not None
            and named(self.push_queries, statement.query_id) is not None
        )


HEADLESS_STATEMENTS = (
    st.CreateSource,
    st.CreateAsSelect,
    st.InsertSelect,
    st.SetProperty,
    st.UnsetProperty,
    st.CreateType,
    st.AlterSource,
)
REFUSED = (
    st.Select,
    st.Print,
    st.AssertValues,
    st.AssertTombstone,
    st.AssertSource,
)


def check_headless(parsed: ParsedStatement) -> None:
    """Refuse statements that a headless server does not support."""
    if not isinstance(parsed.statement, HEADLESS_STATEMENTS):
        raise StatementFailed(
            "Unsupported statement. Only the following statements are supporting in "
            "standalone mode: CREATE STREAM, CREATE TABLE, CREATE STREAM AS SELECT, CREATE "
            "TABLE AS SELECT, INSERT INTO, SET, UNSET, CREATE TYPE and ALTER.\n"
            f"Statement: {parsed.text}"
        )


def wrong_statement(statement: st.Statement) -> StatementFailed:
    """The error for a statement that is not executed here."""
    if isinstance(statement, st.Select | st.Print):
        return WrongEndpoint(
            "The following statement types should be issued to the websocket endpoint '/query': "
            f"{'SELECT' if isinstance(statement, st.Select) else 'PRINT'}",
            hint="send queries and PRINT to their own endpoint",
        )
    return StatementFailed(f"{type(statement).__name__} is only allowed in test scripts")
