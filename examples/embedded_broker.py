"""A broker inside a program: produce and consume without a socket."""

import tempfile

from broker import Broker
from broker.client import consumer, producer


def main() -> list[str]:
    """Write three orders, read them back."""
    with tempfile.TemporaryDirectory() as folder, Broker(data_directory=folder) as broker:
        with producer(broker) as out:
            for name, amount in (("alice", 12), ("bob", 7), ("alice", 30)):
                out.send("orders", key=name.encode(), value=str(amount).encode())

        with consumer(broker, group_id="billing", auto_offset_reset="earliest") as orders:
            orders.subscribe(["orders"])
            seen: list[str] = []
            while len(seen) < 3:
                for record in orders.poll(timeout_ms=1000):
                    seen.append(f"{(record.key or b'').decode()} {(record.value or b'').decode()}")
            orders.commit()
    return seen


if __name__ == "__main__":
    print("\n".join(main()))
