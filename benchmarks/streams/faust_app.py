"""The workloads in faust, with plain dictionaries, as in its guide.

python -m benchmarks.streams.faust_app WORKLOAD BOOTSTRAP APPLICATION_ID INPUT TABLE OUTPUT DATA_DIR
"""

import sys

import faust

PARTITIONS = 4


def build(workload: str, app: faust.App, topic: str, output: str) -> None:
    """Define the workload."""
    orders = app.topic(topic)
    results = app.topic(output)
    if workload == "filter":

        @app.agent(orders)  # type: ignore[untyped-decorator]
        async def project(stream: faust.Stream[dict[str, object]]) -> None:
            async for order in stream:
                if order["price"] > 50:
                    value = {"user": order["user"], "price": order["price"]}
                    await results.send(key=order["user"], value=value)

        return
    totals = app.Table("totals", default=lambda: (0, 0.0), partitions=PARTITIONS).tumbling(
        60.0, expires=3600.0
    )

    @app.agent(orders)  # type: ignore[untyped-decorator]
    async def count(stream: faust.Stream[dict[str, object]]) -> None:
        async for order in stream:
            user = order["user"]
            number, total = totals[user].current()
            number, total = number + 1, total + order["price"]
            totals[user] = (number, total)
            await results.send(key=user, value={"count": number, "sum": total})


def main(arguments: list[str]) -> None:
    """Run until SIGTERM."""
    workload, bootstrap, application_id, topic, _, output, data_dir = arguments
    app = faust.App(
        application_id,
        broker=f"kafka://{bootstrap}",
        store="memory://",
        datadir=data_dir,
        web_enabled=False,
        topic_partitions=PARTITIONS,
        topic_disable_leader=True,
        broker_commit_interval=1.0,
    )
    build(workload, app, topic, output)
    faust.Worker(app, loglevel="WARNING", quiet=True).execute_from_commandline()


if __name__ == "__main__":
    main(sys.argv[1:])
