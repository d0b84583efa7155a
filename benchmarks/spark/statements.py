"""The statements of examples/spark_pipeline, one workload at a time."""

import re

from examples.spark_pipeline.running import PIPELINE

# The results of each workload, in the order of their statements, and the topics it reads.
WORKLOADS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "filter": (("large_orders",), ("orders",)),
    "enrich": (("orders_with_shops",), ("orders",)),
    "tumbling": (("shop_minutes",), ("orders",)),
    "session": (("visits",), ("views",)),
    "streams": (("views_before_orders",), ("orders", "views")),
    "tables": (("spending", "accounts"), ("orders",)),
}
STATEMENT = re.compile(r"^(?:SET|CREATE)\b.*?;", re.DOTALL | re.MULTILINE)


def statements(workload: str, suffix: str) -> tuple[str, str]:
    """The statements for sources and for queries, whose result topics have the suffix."""
    all_statements = STATEMENT.findall(PIPELINE.read_text())
    sources = [text for text in all_statements if " AS\n" not in text]
    results, _ = WORKLOADS[workload]
    queries = []
    for name in results:
        topic = f"KAFKA_TOPIC = '{name}'"
        (text,) = (each for each in all_statements if topic in each)
        queries.append(text.replace(topic, f"KAFKA_TOPIC = '{name}-{suffix}'"))
    return "\n".join(sources), "\n".join(queries)
