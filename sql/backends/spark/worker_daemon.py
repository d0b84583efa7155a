"""The process that Spark forks its Python workers from: what they all need is loaded once.

A worker alone takes seconds to import it, and a session has several for each query.
"""

import gc
import importlib

from pyspark.daemon import manager

COLLECTIONS = (100_000, 50, 100)
MODULES = ("sql.backends.spark.source", "sql.backends.spark.task_rows")


def main() -> None:
    """Load, then do what Spark's own daemon does."""
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()  # so that collections in workers do not touch, and copy, pages that they share
    # Rows of a batch are freed by counting: looking at them again and again took a third of a task.
    gc.set_threshold(*COLLECTIONS)
    manager()


if __name__ == "__main__":
    main()
