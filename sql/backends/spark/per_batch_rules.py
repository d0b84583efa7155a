"""The plans that can run with 'spark.updates'='per-batch', on Spark's own operators.

All others are refused when the statement is executed, with the unsupported construct.
"""

from sql.errors import SqlError
from sql.plan import (
    Aggregate,
    Explode,
    Filter,
    PlanNode,
    Project,
    Rekey,
    Scan,
    Sink,
    StreamJoin,
)
from sql.syntax.queries import JoinKind, WindowKind

SETTING = "spark.updates"
PER_RECORD = "per-record"
PER_BATCH = "per-batch"
HINT = f"leave '{SETTING}' at '{PER_RECORD}', which runs every query"
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")


def stateful_step(plan: Sink) -> Aggregate | StreamJoin | None:
    """The step that Spark's operator runs; None if the plan is stateless.

    SqlError if Spark has no such operator.
    """
    step = before_single_rows(plan.input)
    match step:
        case Aggregate():
            _check_aggregate(step)
            return step
        case StreamJoin():
            _check_join(step)
            return step
        case Scan() if not step.shape.is_table:
            return None
        case _:
            raise _refused(_name(step))


def before_single_rows(step: PlanNode) -> PlanNode:
    """The last step before the steps on single rows."""
    while isinstance(step, Filter | Project | Explode | Rekey):
        step = step.input
    return step


def scan_of(step: PlanNode) -> Scan:
    """The source, if only steps on single rows follow it; otherwise it is refused."""
    found = before_single_rows(step)
    if not isinstance(found, Scan) or found.shape.is_table:
        raise _refused(f"{_name(found)} before another step with state")
    if found.shape.window is not None:
        raise _refused(f'the windowed source "{found.source}"')
    return found


def function_name(call_name: str) -> str:
    """An aggregate's name in FUNCTIONS."""
    return call_name.upper()


def _check_aggregate(step: Aggregate) -> None:
    scan_of(step.input)
    for call in step.calls:
        name = call.function.signature.name
        if function_name(name) not in FUNCTIONS:
            raise _refused(f"the aggregate {name.upper()}")
    if step.window is not None and step.window.kind is WindowKind.SESSION and not step.final:
        raise _refused("SESSION windows without EMIT FINAL")


def _check_join(step: StreamJoin) -> None:
    scan_of(step.left)
    scan_of(step.right)
    if step.kind is not JoinKind.INNER and step.grace_ms is None:
        raise _refused(f"{step.kind.value} JOIN of streams without a GRACE PERIOD")


def _refused(what: str) -> SqlError:
    return SqlError(f"{what} cannot run per batch on Spark", hint=HINT)


def _name(step: PlanNode) -> str:
    if isinstance(step, Scan):
        return f'table "{step.source}"'
    names = {
        "Aggregate": "an aggregate",
        "StreamJoin": "a join of streams",
        "StreamTableJoin": "a join of a stream with a table",
        "TableJoin": "a join of tables",
        "ForeignKeyJoin": "a join of tables by a foreign key",
    }
    return names[type(step).__name__]
