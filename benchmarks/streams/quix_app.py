"""The workloads in quixstreams; runs in its own Python environment.

python -m benchmarks.streams.quix_app WORKLOAD BOOTSTRAP APPLICATION_ID INPUT TABLE OUTPUT STATE_DIR
"""

import sys

from quixstreams import Application
from quixstreams.dataframe import StreamingDataFrame
from quixstreams.dataframe.windows.aggregations import Count, Sum

COMMIT_INTERVAL_S = 1.0


def build(workload: str, app: Application, topic: str, table: str) -> StreamingDataFrame:
    """Define the workload."""
    orders = app.dataframe(app.topic(topic))
    if workload == "filter":
        orders = orders[orders["price"] > 50]
        return orders[["user", "price"]]
    if workload == "tumbling":
        totals = orders.tumbling_window(60_000).agg(count=Count(), sum=Sum("price"))
        return totals.current()
    profiles = app.dataframe(app.topic(table))
    return orders.join_asof(
        profiles,
        how="inner",
        on_merge=lambda order, profile: {
            "user": order["user"],
            "price": order["price"],
            "name": profile["name"],
            "level": profile["level"],
        },
    )


def main(arguments: list[str]) -> None:
    """Run until SIGTERM."""
    workload, bootstrap, application_id, topic, table, output, state_dir = arguments
    app = Application(
        broker_address=bootstrap,
        consumer_group=application_id,
        auto_offset_reset="earliest",
        state_dir=state_dir,
        commit_interval=COMMIT_INTERVAL_S,
        use_changelog_topics=True,
        loglevel="WARNING",
    )
    build(workload, app, topic, table).to_topic(app.topic(output))
    app.run()


if __name__ == "__main__":
    main(sys.argv[1:])
