"""RowRun: steps on single rows (read, filter, project, group), as one generated function.

For SELECT USER, PRICE FROM S WHERE PRICE > 50 it is

    def process(key, value, timestamp_ms, headers):
        if value is None:
            return
        try:
            if not ((t1 := value[2]) is not None and t1 > 50):
                return
        except Exception:
            if not careful1(read(key, value, timestamp_ms, headers)):
                return
        try:
            row1 = (value[0], value[2], )
        except Exception:
            row1 = careful2(read(key, value, timestamp_ms, headers))
        for watch in tap.watchers:
            watch(key, row1, timestamp_ms)
        forward(key, row1, timestamp_ms, headers)

so a whole row is only created if it is needed. The same lines are the body of a loop in

    def process_rows(rows):
        for key, value, timestamp_ms, headers in rows:
            ...

with `continue` for `return` and `yield` for `forward`, for tasks that pull their rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from sql.backends.native.expression_code import ExpressionWriter
from sql.backends.native.expressions import (
    Log,
    careful_predicate,
    careful_row_function,
    compiled,
    refusing_depth,
)
from sql.backends.native.source_code import ColumnsOf, ColumnSource, Names, PythonCode
from sql.backends.native.steps import RowStream, then
from sql.backends.native.tap import Tap
from sql.expressions import TypedExpression
from streams.processor import NodeContext, Process, ProcessRows

ROWS = "SQL-ROWS-"
# Statements at the end of a single row.
SKIP, FORWARD = "return", "forward"


class RowOrigin(Protocol):
    """The records before the first step, and the source of the columns of their rows."""

    def columns(self) -> ColumnSource:
        """The source of columns, using the variables key, value, timestamp_ms and headers."""
        ...

    @property
    def before(self) -> tuple[str, ...]:
        """Lines before the first step."""
        ...

    @property
    def row(self) -> str:
        """The source of the whole row, as later steps need it."""
        ...

    @property
    def read(self) -> str:
        """The source of the whole row with all its columns."""
        ...

    @property
    def objects_named(self) -> tuple[str, ...]:
        """The names of objects that the source uses, except constants."""
        ...

    def objects(self, context: NodeContext) -> dict[str, object]:
        """The objects with these names, for a task."""
        ...


@dataclass(frozen=True, slots=True)
class ValueIsRow:
    """Records whose value is already the row."""

    before: tuple[str, ...] = ()
    row: str = "value"
    read: str = "value"
    objects_named: tuple[str, ...] = ()

    def columns(self) -> ColumnSource:
        """Indexes of the value."""
        return ColumnsOf("value")

    def objects(self, context: NodeContext) -> dict[str, object]:
        """No other objects."""
        return {}


@dataclass(frozen=True, slots=True)
class _Filtered:
    """Keeps only rows for which a condition is true."""

    condition: TypedExpression
    log: Log


@dataclass(frozen=True, slots=True)
class _Projected:
    """Replaces the row with other values."""

    expressions: tuple[TypedExpression, ...]
    log: Log


@dataclass(frozen=True, slots=True)
class RowRun:
    """Steps that are not part of a topology yet; each method returns a longer run."""

    stream: RowStream
    origin: RowOrigin
    steps: tuple[_Filtered | _Projected, ...] = ()
    key: _Projected | None = None
    drops_nulls: bool = False
    tap: Tap | None = None

    def kept(self, condition: TypedExpression, log: Log) -> "RowRun":
        """Only rows for which a condition is true; null rows are dropped."""
        return replace(self, steps=(*self.steps, _Filtered(condition, log)), drops_nulls=True)

    def selected(self, expressions: Sequence[TypedExpression], log: Log) -> "RowRun":
        """The values of some expressions; null rows are unchanged."""
        return replace(self, steps=(*self.steps, _Projected(tuple(expressions), log)))

    def present(self) -> "RowRun":
        """Drop null rows."""
        return replace(self, drops_nulls=True)

    def grouped(self, expressions: Sequence[TypedExpression], log: Log) -> "RowRun":
        """Rows with the key of their group; null rows and keys with a null are dropped."""
        return replace(self, key=_Projected(tuple(expressions), log), drops_nulls=True)

    def tapped(self, tap: Tap) -> "RowRun":
        """Let readers watch the rows."""
        return replace(self, tap=tap)

    def added(self) -> RowStream:
        """The stream after all steps of the run, which is one node of the topology."""
        nothing = not self.steps and self.key is None and self.tap is None
        if isinstance(self.origin, ValueIsRow) and nothing and not self.drops_nulls:
            return self.stream
        with refusing_depth():
            operator = _RunWriter(self).operator()
        return then(self.stream, ROWS, operator, new_key=self.key is not None)


# The arguments: forward, the tap and the origin's objects.
_Make = Callable[[Process, Tap | None, dict[str, object]], tuple[Process, ProcessRows]]


@dataclass(frozen=True, slots=True)
class _RunOperator:
    """The operator of a run."""

    make: _Make
    origin: RowOrigin
    tap: Tap | None

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        return self.make(context.forward, self.tap, self.origin.objects(context))[0]

    def open_rows(self, context: NodeContext) -> ProcessRows:
        """The node's code for rows that are pulled."""
        return self.make(context.forward, self.tap, self.origin.objects(context))[1]


class _RunWriter:
    """Generates the source of one run."""

    def __init__(self, run: RowRun) -> None:
        self._run = run
        self._names = Names()
        self._columns = run.origin.columns()
        self._row, self._read = run.origin.row, run.origin.read
        self._lines: list[str] = []

    def operator(self) -> _RunOperator:
        run = self._run
        for step in run.steps:
            if isinstance(step, _Filtered):
                self._keep(step)
            else:
                self._row = self._read = self._select(step, self._names.fresh("row"))
                self._columns = ColumnsOf(self._row)
        key = "key"
        if run.key is not None:
            key = self._select(run.key, "group")
            self._lines += ["if None in group:", f"    {SKIP}"]
        self._forward(key, self._row)
        return _RunOperator(self._made(), run.origin, run.tap)

    def _made(self) -> _Make:
        objects = self._run.origin.objects_named
        lines = [*self._null(), *self._run.origin.before, *self._lines]
        source = [
            "def make(forward, tap, objects):",
            *(f"    {each} = objects[{each!r}]" for each in objects),
            *(f"    {line}" for text in self._names.functions for line in text.splitlines()),
            "    def process(key, value, timestamp_ms, headers):",
            *(f"        {line}" for line in lines),
            "    def process_rows(rows):",
            "        for key, value, timestamp_ms, headers in rows:",
            *(f"            {_in_loop(line)}" for line in lines),
            "    return process, process_rows",
        ]
        names = compiled("\n".join(source), self._names.namespace)
        return cast("_Make", names["make"])

    def _null(self) -> list[str]:
        """The handling of a record without a value."""
        if self._run.drops_nulls:
            return ["if value is None:", f"    {SKIP}"]
        lines, self._lines = self._lines, []
        self._forward("key", "None")
        nothing, self._lines = self._lines, lines
        return ["if value is None:", *(f"    {line}" for line in [*nothing, SKIP])]

    def _keep(self, step: _Filtered) -> None:
        code = self._written([step.condition])[0]
        careful = self._names.constant(careful_predicate(step.condition, step.log))
        refused = f"{code.text} is not True" if code.nullable else f"not {code.text}"
        self._lines += [
            "try:",
            f"    if {refused}:",
            f"        {SKIP}",
            "except Exception:",
            f"    if not {careful}({self._read}):",
            f"        {SKIP}",
        ]

    def _select(self, step: _Projected, name: str) -> str:
        values = "".join(f"{code.text}, " for code in self._written(step.expressions))
        careful = self._names.constant(careful_row_function(step.expressions, step.log))
        self._lines += [
            "try:",
            f"    {name} = ({values})",
            "except Exception:",
            f"    {name} = {careful}({self._read})",
        ]
        return name

    def _written(self, expressions: Sequence[TypedExpression]) -> list[PythonCode]:
        writer = ExpressionWriter(self._names, columns=self._columns)
        return [writer.code(each) for each in expressions]

    def _forward(self, key: str, row: str) -> None:
        if not row.isidentifier():
            self._lines.append(f"whole = {row}")
            row = "whole"
        if self._run.tap is not None:
            self._lines += [
                "for watch in tap.watchers:",
                f"    watch({key}, {row}, timestamp_ms)",
            ]
        self._lines.append(f"{FORWARD}({key}, {row}, timestamp_ms, headers)")


def _in_loop(line: str) -> str:
    """A line for a single row, adapted for a loop."""
    indent = line[: len(line) - len(line.lstrip())]
    text = line[len(indent) :]
    if text == SKIP:
        return f"{indent}continue"
    if text.startswith(f"{FORWARD}("):
        return f"{indent}yield {text.removeprefix(FORWARD)}"
    return line
