"""Steps on single rows, run on the rows of a batch with the functions of the native engine."""

from collections.abc import Callable, Iterator

from sql.backends.native.evaluating import predicate, row_function, table_function
from sql.backends.native.stateless import rekeying
from sql.backends.spark.row_decoding import Record
from sql.plan import Explode, Filter, PlanNode, Project, Rekey
from sql.rows.row_format import Row

Steps = Callable[[list[Record]], list[Record]]


def steps_between(last: PlanNode, first: PlanNode) -> Steps:
    """All steps after `first`, up to `last`, on the rows of `first`."""
    if last is first:
        return lambda records: records
    assert isinstance(last, Filter | Project | Explode | Rekey), f"{last.name} is not such a step"
    before, step = steps_between(last.input, first), _step(last)
    return lambda records: step(before(records))


def _step(step: Filter | Project | Explode | Rekey) -> Steps:
    match step:
        case Filter():
            return _filter(step)
        case Project():
            compute = row_function([each for _, each in step.columns], _ignore)
            return lambda records: [
                (key, None if row is None else compute(row), time_ms)
                for key, row, time_ms in records
            ]
        case Explode():
            return _explode(step)
        case Rekey():
            rekey = rekeying(step, _ignore).rekey
            return lambda records: [(*rekey(key, row), time_ms) for key, row, time_ms in records]


def _filter(step: Filter) -> Steps:
    condition = predicate(step.condition, _ignore)
    if step.shape.is_table:  # a row that does not match is deleted from the table
        return lambda records: [
            (key, row if row is not None and condition(row) else None, time_ms)
            for key, row, time_ms in records
        ]
    return lambda records: [each for each in records if each[1] is not None and condition(each[1])]


def _explode(step: Explode) -> Steps:
    calls = [table_function(overload, given, _ignore) for overload, given in step.calls]

    def rows_of(row: Row) -> Iterator[Row]:
        lists = [call(row) for call in calls]
        for index in range(max(map(len, lists), default=0)):
            yield (*row, *(each[index] if index < len(each) else None for each in lists))

    return lambda records: [
        (key, one, time_ms)
        for key, row, time_ms in records
        if row is not None
        for one in rows_of(row)
    ]


def _ignore(error: Exception, row: Row | None) -> None:
    """Do nothing: an expression that fails gives null, and a worker's log is not read."""
