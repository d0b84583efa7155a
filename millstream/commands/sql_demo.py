"""The SQL part of `millstream demo`: orders, a windowed table, an enriched stream, two queries."""

import random
import threading
import time
from decimal import Decimal
from pathlib import Path

import click
import orjson

from broker import Broker
from broker.client import producer
from millstream.output import Output
from sql.engine.engine import Engine

CUSTOMERS = {"ann": "Streamton", "bob": "Millbury", "eve": "Weirford"}
ITEMS = ("flour", "bran", "oats", "rye")
FEED_EVERY_S = 0.05
FED_EACH_TIME = 20
ROWS_SHOWN = 8
LIMIT_S = 30.0

STATEMENTS = """
CREATE STREAM orders (customer STRING KEY, item STRING, amount DECIMAL(9, 2))
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE customers (customer STRING PRIMARY KEY, city STRING)
  WITH (KAFKA_TOPIC = 'customers', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE order_totals AS
  SELECT customer, COUNT(*) AS orders, SUM(amount) AS total
  FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY customer EMIT CHANGES;
CREATE STREAM enriched AS
  SELECT o.customer AS customer, item, amount, city
  FROM orders o LEFT JOIN customers c ON o.customer = c.customer EMIT CHANGES;
"""
PUSH = f"SELECT customer, item, amount, city FROM enriched EMIT CHANGES LIMIT {ROWS_SHOWN};"
PULL = "SELECT customer, orders, total FROM order_totals WHERE customer = 'ann';"


class OrderFeed(threading.Thread):
    """Writes orders until it is stopped."""

    def __init__(self, broker: Broker) -> None:
        """Nothing is written before `start`."""
        super().__init__(name="orders", daemon=True)
        self._broker = broker
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Write some, wait a little, and again."""
        chance = random.Random(1)
        with producer(self._broker, linger_ms=5) as out:
            while not self._stop_asked.wait(FEED_EVERY_S):
                for _ in range(FED_EACH_TIME):
                    order = {
                        "item": chance.choice(ITEMS),
                        "amount": chance.randint(100, 9999) / 100,
                    }
                    customer = chance.choice(list(CUSTOMERS))
                    out.send("orders", orjson.dumps(order), key=customer.encode())

    def stop(self) -> None:
        """Write no more."""
        self._stop_asked.set()
        self.join()


def play_sql(broker: Broker, folder: Path, output: Output) -> None:
    """Run the statements, show rows as they come, then ask the table."""
    with Engine(broker, data_directory=str(folder)) as engine:
        engine.execute(STATEMENTS)
        for customer, city in CUSTOMERS.items():
            engine.execute(f"INSERT INTO customers VALUES ('{customer}', '{city}');")
        feed = OrderFeed(broker)
        feed.start()
        try:
            with_rows = engine.query(PUSH)
            rows = [row.values for row in with_rows.rows()]
            output.rows([_row("customer item amount city", each) for each in rows], title=PUSH)
            held = _held(engine)
        finally:
            feed.stop()
        output.rows([_row("customer orders total", each) for each in held], title=PULL)


def _held(engine: Engine) -> list[object]:
    """What the table has of a customer, as soon as the query that keeps it has come so far."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        held: list[object] = [row.values for row in engine.query(PULL).rows()]
        if held:
            return held
        if time.monotonic() > deadline:
            raise click.ClickException(f"nothing after {LIMIT_S:.0f} s: {PULL}")


def _row(names: str, values: object) -> dict[str, object]:
    assert isinstance(values, tuple | list)
    shown = (str(each) if isinstance(each, Decimal) else each for each in values)
    return dict(zip(names.split(), shown, strict=True))
