"""Test your own pipeline: run it on a simulated platform with crashes and other faults.

    def test_totals_survive_crashes(simulated):
        simulated.run(
            build_topology,
            inputs={"orders": [Record("ann", 3), Record("bob", 4)]},
            outputs={"totals": table(key=str, value=int)},
        )

The fixture `simulated` is in `millstream.pytest_plugin`, which pytest finds by itself.
"""

from millstream.testing.faults import crash, duplicate, late, network, reorder
from millstream.testing.outputs import stream, table
from millstream.testing.records import Input, Record
from millstream.testing.report import DifferentResult, FailedRun
from millstream.testing.simulated import Simulated

__all__ = [
    "DifferentResult",
    "FailedRun",
    "Input",
    "Record",
    "Simulated",
    "crash",
    "duplicate",
    "late",
    "network",
    "reorder",
    "stream",
    "table",
]
