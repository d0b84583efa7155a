"""Read, process and write in transactions: no record is lost or duplicated."""

import tempfile

from broker import Broker, TopicPartition
from broker.client import OffsetAndMetadata, consumer, producer


def shout(broker: Broker) -> None:
    """Copy words to shouted words; input offsets and output commit together or not at all."""
    with (
        consumer(broker, group_id="shouter", auto_offset_reset="earliest") as words,
        producer(broker, transactional_id="shouter-1") as out,
    ):
        words.subscribe(["words"])
        out.init_transactions()
        done = 0
        while done < 3:
            records = words.poll(timeout_ms=1000)
            if not records:
                continue
            out.begin_transaction()
            for record in records:
                out.send("shouted", (record.value or b"").upper())
            positions = {
                TopicPartition(record.topic, record.partition): OffsetAndMetadata(record.offset + 1)
                for record in records
            }
            out.send_offsets_to_transaction(positions, words.group_metadata())
            out.commit_transaction()
            done += len(records)


def main() -> list[str]:
    """Shout three words; a reader of committed records sees them once."""
    with tempfile.TemporaryDirectory() as folder, Broker(data_directory=folder) as broker:
        with producer(broker) as out:
            for word in (b"mill", b"stream", b"water"):
                out.send("words", word)
        shout(broker)
        with consumer(
            broker, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as shouted:
            shouted.assign([TopicPartition("shouted", 0)])
            seen: list[str] = []
            while len(seen) < 3:
                seen += [(each.value or b"").decode() for each in shouted.poll(timeout_ms=1000)]
    return seen


if __name__ == "__main__":
    print("\n".join(main()))
