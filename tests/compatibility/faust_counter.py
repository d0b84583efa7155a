"""A Faust application that counts words in a table; run as a worker by the test beside it."""

import os

import faust

app = faust.App(
    os.environ["COUNTER_NAME"],
    broker=f"kafka://{os.environ['COUNTER_BROKER']}",
    store="memory://",
    web_enabled=False,
    topic_partitions=2,
    topic_disable_leader=True,
    broker_heartbeat_interval=0.3,
    stream_wait_empty=False,
)
words = app.topic(os.environ["COUNTER_INPUT"], value_type=bytes, value_serializer="raw")
counted = app.topic(os.environ["COUNTER_OUTPUT"], value_type=bytes, value_serializer="raw")
counts = app.Table("counts", default=int, partitions=2)


@app.agent(words)  # type: ignore[untyped-decorator]
async def count(stream: faust.Stream[bytes]) -> None:
    async for value in stream:
        word = value.decode()
        counts[word] += 1
        await counted.send(key=value, value=str(counts[word]).encode())
