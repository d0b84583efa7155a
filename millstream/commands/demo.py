"""`millstream demo`: an embedded broker, word count, stock statistics and SQL, live."""

import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Group
from rich.live import Live

from broker import Broker, BrokerConfig
from broker.client import admin, producer
from broker.client.api import NewTopic
from millstream.commands.options import json_option
from millstream.commands.run import totals
from millstream.commands.sql_demo import play_sql
from millstream.output import Output, table
from streams import AppState, StreamsApp, StreamsBuilder, Topology, hopping

PARTITIONS = 2
WINDOW_MS, EVERY_MS = 5_000, 1_000
FEED_EVERY_S = 0.05
FED_EACH_TIME = 100  # lines, and as many trades
SHOW_EVERY_S = 0.5
LIMIT_S = 10.0  # for the start, and for the last records
SYMBOLS = ("FLOUR", "MILL", "WATER")
PROVERB = "the mill by the stream turns water into flour and the stream never ends"
WORDS_SHOWN = 8

Row = dict[str, Any]


def build() -> Topology:
    """Counts of words, and of each stock the lowest ask, count and average of 5 s, every second."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    words = lines.flat_map_values(lambda line: line.split())
    words.group_by(lambda _, word: word).count(store="words").to_stream().to("word-counts")
    trades = builder.stream("trades", key=str, value=dict[str, Any])
    windows = trades.group_by_key().windowed_by(hopping(WINDOW_MS, EVERY_MS))
    statistics = windows.aggregate(
        lambda: {"lowest": None, "count": 0, "sum": 0.0}, add_trade, store="statistics", value=dict
    )
    statistics.to_stream().to("statistics")
    return builder.build()


def add_trade(_: str, trade: Row, seen: Row) -> Row:
    """Take one trade into account."""
    ask, lowest = trade["ask"], seen["lowest"]
    return {
        "lowest": ask if lowest is None else min(lowest, ask),
        "count": seen["count"] + 1,
        "sum": seen["sum"] + ask,
    }


class Feed(threading.Thread):
    """Writes lines and trades until it is stopped."""

    def __init__(self, broker: Broker) -> None:
        """Nothing is written before `start`."""
        super().__init__(name="feed", daemon=True)
        self._broker = broker
        self._stop_asked = threading.Event()
        self.lines = 0
        self.words = 0
        self.trades = 0

    def run(self) -> None:
        """Write some, wait a little, and again."""
        chance = random.Random(1)
        words = PROVERB.split()
        asks = dict.fromkeys(SYMBOLS, 100.0)
        with producer(self._broker, linger_ms=5) as out:
            while not self._stop_asked.wait(FEED_EVERY_S):
                for _ in range(FED_EACH_TIME):
                    line = chance.choices(words, k=5)
                    out.send("lines", " ".join(line).encode())
                    symbol = chance.choice(SYMBOLS)
                    asks[symbol] = max(1.0, asks[symbol] + chance.gauss(0, 0.2))
                    ask = orjson.dumps({"ask": round(asks[symbol], 2)})
                    out.send("trades", ask, key=symbol.encode())
                    self.words += len(line)
                self.lines += FED_EACH_TIME
                self.trades += FED_EACH_TIME

    def stop(self) -> None:
        """Write no more; everything written is in the topics afterwards."""
        self._stop_asked.set()
        self.join()


@click.command()
@click.option("--seconds", default=8.0, show_default=True, help="How long records are written.")
@json_option
def demo(seconds: float, output: Output) -> None:
    """Run word count, stock statistics and SQL live on a broker in this process."""
    config = BrokerConfig(group_initial_rebalance_delay_ms=0, num_partitions=PARTITIONS)
    with (
        tempfile.TemporaryDirectory(
            prefix="millstream-demo-", ignore_cleanup_errors=True
        ) as folder,
        Broker(config, data_directory=f"{folder}/broker") as broker,
    ):
        with admin(broker) as administration:
            names = ("lines", "trades", "word-counts", "statistics")
            administration.create_topics([NewTopic(name) for name in names]).all()
        app = StreamsApp(
            build(),
            application_id="demo",
            broker=broker,
            state_dir=Path(folder) / "state",
            commit_interval_ms=200,
        )
        with app:
            if not app.wait_for(AppState.RUNNING, timeout_ms=int(LIMIT_S * 1000)):
                raise click.ClickException(f"the application is {app.state.value}")
            _play(app, Feed(broker), seconds, output)
        play_sql(broker, Path(folder) / "sql", output)


def _play(app: StreamsApp, feed: Feed, seconds: float, output: Output) -> None:
    """Feed the application, show its state as it changes, and at the end check it."""
    started = time.monotonic()
    feed.start()
    with Live(console=output.progress_console, transient=True, auto_refresh=False) as live:
        while time.monotonic() < started + seconds:
            app.wait(timeout_ms=int(SHOW_EVERY_S * 1000))  # raises what has ended it
            if output.progress_console.is_terminal and not output.as_json:
                live.update(
                    Group(
                        table(_words(app), f"words, {_rate(app, started):,.0f} records/s"),
                        table(_statistics(app), "stocks, the last 5 seconds"),
                    ),
                    refresh=True,
                )
        feed.stop()
        counted = _wait_for_all(app, feed)
    rate = _rate(app, started)
    output.rows(_words(app)[:WORDS_SHOWN], title="words counted")
    output.rows(_statistics(app), title="stocks, 5 s windows every 1 s")
    processed = totals(app)["records_processed_total"]
    output.done(
        f"{feed.lines:,} lines and {feed.trades:,} trades, {counted:,} words counted, "
        f"{processed:,} records processed at {rate:,.0f}/s",
        lines=feed.lines,
        trades=feed.trades,
        words=counted,
        processed=processed,
        processed_per_second=round(rate),
    )


def _wait_for_all(app: StreamsApp, feed: Feed) -> int:
    """How many words are counted when all are."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        counted = sum(int(row["count"]) for row in _words(app))
        if counted >= feed.words:
            return counted
        if time.monotonic() > deadline:
            raise click.ClickException(f"{counted} of {feed.words} words counted")
        app.wait(timeout_ms=50)


def _words(app: StreamsApp) -> list[Row]:
    """Words with their counts, the most frequent first."""
    rows = [{"word": word, "count": count} for word, count in app.store("words").all()]
    return sorted(rows, key=lambda row: (-row["count"], row["word"]))


def _statistics(app: StreamsApp) -> list[Row]:
    """The newest full window of each stock."""
    newest: dict[str, Row] = {}
    for window, seen in app.store("statistics").all():
        if window.end_ms <= int(time.time() * 1000) or window.key not in newest:
            newest[window.key] = {
                "stock": window.key,
                "from": time.strftime("%H:%M:%S", time.localtime(window.start_ms / 1000)),
                "lowest ask": seen["lowest"],
                "count": seen["count"],
                "average": round(seen["sum"] / seen["count"], 2),
            }
    return [newest[stock] for stock in sorted(newest)]


def _rate(app: StreamsApp, started: float) -> float:
    processed = totals(app).get("records_processed_total", 0)
    return processed / (time.monotonic() - started)
