"""Bounded: all that is in the topics now, processed once, query after query.

Queries run in the order in which they were made, so that each finds the whole of what the ones
before it wrote. One is done when its group has read all that its topics have, those between its own
sub-topologies too; when all are done in one turn, nothing is left.
"""

from collections.abc import Callable, Mapping

from broker.client.opening import Target, admin, consumer
from sql.engine.spark_progress import SparkProgress
from sql.engine.spark_runtime import SparkRuntime
from sql.errors import SqlError

WAIT_MS = 200

# Told the id of a query, how far it is, and at last that it is done with what there was.
Tell = Callable[[str, SparkProgress | None, bool], None]
# Waits for milliseconds; True if the run is to be given up.
Wait = Callable[[int], bool]


def run_bounded(
    queries: Mapping[str, SparkRuntime], target: Target, *, tell: Tell, wait: Wait
) -> bool:
    """Run all queries until nothing is left; False if it was given up before."""
    while True:
        is_left = False
        for query_id, runtime in queries.items():
            left = records_left(target, runtime.application_id)
            while left != 0:
                is_left = True
                if not _run(query_id, runtime, tell, wait):
                    return False
                before, left = left, records_left(target, runtime.application_id)
                if left is None or left == before:
                    raise SqlError(
                        f"query {query_id} does not move on: it has {left} offsets left to read",
                        hint="see whether another process writes to its topics, or uses its group",
                    )
        if not is_left:
            return True


def _run(query_id: str, runtime: SparkRuntime, tell: Tell, wait: Wait) -> bool:
    """Process what is there now; False if that was given up."""
    try:
        runtime.begin_bounded()
        while not runtime.is_bounded_done():
            tell(query_id, runtime.progress, False)
            if wait(WAIT_MS):
                runtime.stop()
                return False
    except SqlError as error:
        message = f"query {query_id} failed on Spark: {error.message}"
        raise SqlError(message, hint=error.hint) from error
    tell(query_id, runtime.progress, True)
    return True


def records_left(target: Target, group: str) -> int | None:
    """Offsets between what a group has read and what can be read; None if it has read nothing."""
    with admin(target) as administration:
        read = administration.list_group_offsets(group).values
    if not read:
        return None
    with consumer(target, isolation_level="read_committed") as reader:
        ends = reader.end_offsets(list(read))
    return sum(max(0, ends[place] - at.offset) for place, at in read.items())
