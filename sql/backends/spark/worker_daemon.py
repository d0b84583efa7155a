"""The process from which Spark forks its Python workers: it loads the common modules once.

Importing them takes seconds per worker, and a session has several workers per query.
"""

import gc
import importlib

from pyspark.daemon import manager

COLLECTIONS = (100_000, 50, 100)
MODULES = ("sql.backends.spark.source", "sql.backends.spark.task_rows")


def main() -> None:
    """Load the modules, then run Spark's own daemon."""
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()  # so that collections in workers do not touch, and copy, shared pages
    # Rows are freed by reference counting: the collector took a third of a task's time.
    gc.set_threshold(*COLLECTIONS)
    manager()


if __name__ == "__main__":
    main()
