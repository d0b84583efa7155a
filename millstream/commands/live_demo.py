"""The demo: generated records, SQL queries on them, and live results."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal

import click
from rich.console import Group
from rich.live import Live

from connect.client import ConnectClient
from millstream.commands.serving import RunningService
from millstream.output import Output, Row, table
from sql.client import SqlClient, StreamedRows

STATEMENTS = """
CREATE STREAM IF NOT EXISTS pageviews (viewtime BIGINT, userid STRING, pageid STRING)
  WITH (KAFKA_TOPIC = 'pageviews', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE IF NOT EXISTS users (userid STRING PRIMARY KEY, regionid STRING, gender STRING)
  WITH (KAFKA_TOPIC = 'users', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM IF NOT EXISTS orders (orderid STRING KEY, itemid STRING, orderunits DOUBLE,
    address STRUCT<city STRING, state STRING, zipcode BIGINT>)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM IF NOT EXISTS pageviews_enriched AS
  SELECT p.userid AS userid, pageid, regionid, gender
  FROM pageviews p LEFT JOIN users u ON p.userid = u.userid EMIT CHANGES;
CREATE TABLE IF NOT EXISTS views_per_region AS
  SELECT regionid, COUNT(*) AS views, COUNT_DISTINCT(userid) AS users
  FROM pageviews_enriched WINDOW TUMBLING (SIZE 5 SECONDS)
  WHERE regionid IS NOT NULL GROUP BY regionid EMIT CHANGES;
CREATE STREAM IF NOT EXISTS big_orders AS
  SELECT orderid, itemid, orderunits, address->city AS city
  FROM orders WHERE orderunits > 9 EMIT CHANGES;
"""
WINDOWS = """
SELECT TIMESTAMPTOSTRING(WINDOWSTART, 'HH:mm:ss') AS since, regionid AS region, views, users
FROM views_per_region EMIT CHANGES;
"""
ENRICHED = "SELECT userid, pageid, regionid, gender FROM pageviews_enriched EMIT CHANGES;"
REGION = "Region_3"
PULL = f"""
SELECT regionid, TIMESTAMPTOSTRING(WINDOWSTART, 'HH:mm:ss') AS since, views, users
FROM views_per_region WHERE regionid = '{REGION}';
"""
RATES = {"users": 20, "pageviews": 50, "orders": 20}  # records in a second
WINDOWS_SHOWN, ROWS_SHOWN = 9, 4  # both fit a terminal of 24 lines
PRINT_EVERY_S = 1.0  # without a terminal
LIMIT_S = 60.0


def connector(topic: str) -> dict[str, str]:
    """The settings of the connector that fills a topic."""
    return {
        "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector",
        "quickstart": topic,
        "kafka.topic": topic,
        "rate": str(RATES[topic]),
        "tasks.max": "1",
    }


@contextmanager
def demo_service(
    addresses: Mapping[str, str], output: Output, *, print_results: bool = False
) -> Iterator[RunningService]:
    """Records and queries on a running platform; `print_results` prints the results at the end."""
    worker = ConnectClient(addresses["connect"])
    with closing(SqlClient(addresses["sql"])) as server:
        server.execute(STATEMENTS)
        for topic in RATES:
            worker.put_config(topic, connector(topic))
        with _show_results(server, output) as results:
            yield RunningService(
                {"event": "demo", "connectors": list(RATES)},
                f"connectors {', '.join(RATES)} generate records; queries process them",
            )
            if print_results:
                pulled = _pulled(server)
        if print_results:
            results.print_all(pulled, output)


class LiveResults:
    """The newest rows of both queries; written by their threads, read by others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: dict[tuple[object, object], Row] = {}
        self._enriched: deque[Row] = deque(maxlen=ROWS_SHOWN)
        self._printed = 0
        self.counts = {"windows": 0, "enriched": 0}

    def add_window(self, row: Row) -> None:
        """Add a changed window, after those that changed earlier."""
        with self._lock:
            key = row["SINCE"], row["REGION"]
            self._windows.pop(key, None)
            self._windows[key] = row
            self.counts["windows"] += 1

    def add_enriched(self, row: Row) -> None:
        """Add a page view that was joined with its user."""
        with self._lock:
            self._enriched.append(row)
            self.counts["enriched"] += 1

    def windows(self) -> list[Row]:
        """The windows that changed last, ordered by time and region."""
        with self._lock:
            newest = list(self._windows.values())[-WINDOWS_SHOWN:]
        return sorted(newest, key=lambda row: (str(row["SINCE"]), str(row["REGION"])))

    def enriched(self) -> list[Row]:
        """The newest page views."""
        with self._lock:
            return list(self._enriched)

    def tables(self) -> Group:
        """Both results as tables for a terminal."""
        return Group(
            table(self.windows(), "page views per region, in 5 s windows"),
            table(self.enriched(), "page views with their users"),
        )

    def print_line(self, output: Output) -> None:
        """Print a line with the newest row of each query, if there are new rows."""
        with self._lock:
            counts = dict(self.counts)
            window = next(reversed(self._windows.values()), None)
            view = self._enriched[-1] if self._enriched else None
        if window is None or view is None or sum(counts.values()) == self._printed:
            return
        self._printed = sum(counts.values())
        output.line(
            {"event": "results", "window": window, "view": view, **counts},
            f"{window['SINCE']} {window['REGION']}: "
            f"{window['VIEWS']} views, {window['USERS']} users   |   "
            f"{view['USERID']} saw {view['PAGEID']} ({view['REGIONID']}, {view['GENDER']})",
        )

    def print_all(self, pulled: list[Row], output: Output) -> None:
        """Print the results, and the rows of one region in the table."""
        output.rows(self.windows(), title="page views per region, in 5 s windows")
        output.rows(self.enriched(), title="page views with their users")
        output.rows(pulled[-ROWS_SHOWN:], title=" ".join(PULL.split()))
        output.done(
            f"{self.counts['enriched']:,} page views joined, {self.counts['windows']:,} "
            "window updates received",
            **self.counts,
        )


@contextmanager
def _show_results(server: SqlClient, output: Output) -> Iterator[LiveResults]:
    """Run both queries and show their results."""
    results = LiveResults()
    with ExitStack() as watching:
        for text, on_row in ((WINDOWS, results.add_window), (ENRICHED, results.add_enriched)):
            watching.enter_context(closing(PushQueryReader(server, text, on_row)))
        if output.console.is_terminal and not output.as_json:
            live = Live(
                get_renderable=results.tables,
                console=output.console,
                refresh_per_second=4,
                transient=True,
            )
            watching.enter_context(live)
        else:
            watching.enter_context(closing(ResultPrinter(results, output)))
        yield results


class PushQueryReader:
    """Reads the rows of a push query in its own thread."""

    def __init__(self, server: SqlClient, text: str, on_row: Callable[[Row], None]) -> None:
        self._server = server
        self._on_row = on_row
        self._rows: StreamedRows = server.query(text)
        self._thread = threading.Thread(target=self._read, name="demo-reader", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        names = [name for name, _ in self._rows.columns]
        for values in self._rows.rows():
            self._on_row(_row(names, values))

    def close(self) -> None:
        """Close the query: the server ends the response, and the thread stops."""
        if self._rows.query_id is not None:
            self._server.close_query(self._rows.query_id)
        self._thread.join(LIMIT_S)
        self._rows.close()


class ResultPrinter:
    """Prints the newest results regularly, without a terminal."""

    def __init__(self, results: LiveResults, output: Output) -> None:
        self._results = results
        self._output = output
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._print, name="demo-printer", daemon=True)
        self._thread.start()

    def _print(self) -> None:
        while not self._closed.wait(PRINT_EVERY_S):
            self._results.print_line(self._output)

    def close(self) -> None:
        """Stop printing."""
        self._closed.set()
        self._thread.join()


def _pulled(server: SqlClient) -> list[Row]:
    """The rows of a region in the table, as soon as there are any."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        with closing(server.query(PULL)) as result:
            names = [name for name, _ in result.columns]
            if rows := [_row(names, values) for values in result.rows()]:
                return rows
    raise click.ClickException(f"no result after {LIMIT_S:.0f} s: {PULL}")


def _row(names: list[str], values: list[object]) -> Row:
    shown = (str(each) if isinstance(each, Decimal) else each for each in values)
    return dict(zip(names, shown, strict=True))
