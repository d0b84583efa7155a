"""Copy a topic batch by batch, without decoding records."""

import tempfile

from broker import Broker, TopicPartition
from broker.client import consumer, producer

RECORDS = 10_000


def main() -> tuple[int, int]:
    """Copy 10,000 records; return how many batches and records were copied."""
    source, copy = TopicPartition("source", 0), TopicPartition("copy", 0)
    with tempfile.TemporaryDirectory() as folder, Broker(data_directory=folder) as broker:
        with producer(broker, linger_ms=5, compression_type="zstd") as out:
            for number in range(RECORDS):
                out.send("source", f"record {number}".encode())

        batches = records = 0
        with (
            consumer(broker, auto_offset_reset="earliest") as reader,
            producer(broker, enable_idempotence=False) as out,
        ):
            reader.assign([source])
            while records < RECORDS:
                for batch in reader.poll_batches(timeout_ms=1000):
                    out.send_batch(copy, batch.data)
                    batches += 1
                    records += batch.last_offset - batch.first_offset + 1
    return batches, records


if __name__ == "__main__":
    print("{} batches, {} records".format(*main()))
