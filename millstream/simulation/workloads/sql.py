"""SqlWorkload: a script of statements, derived from a seed, and the expected results.

Two sources, some queries on them, and rounds of inserts and changes: pause and resume, replace, add
a column, drop and recreate. Rows are identified by column N. The expected results of queries follow
from the rows in the topics of the sources: see reference.py.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from broker.client.opening import admin, producer
from broker.errors import RegistryError
from broker.model import LATEST_TIMESTAMP, TopicPartition
from broker.serde.registry.api import SchemaRegistry
from millstream.simulation.clock import START_MS
from millstream.simulation.observations import Violation
from millstream.simulation.workloads import reference
from millstream.simulation.workloads.reference import Inputs, Order, Result, Shape
from millstream.simulation.workloads.statements import (
    Script,
    ScriptServer,
    Step,
    add_column_step,
    control_step,
    create_step,
    drop_step,
    insert,
    insert_step,
    writer,
)
from millstream.simulation.workloads.topic_reading import TopicReading
from sql.queries import QueryState

CUSTOMERS = ("ann", "bob", "cid")
SOURCES: Mapping[str, Shape] = {
    "ORDERS": Shape(("CUSTOMER", "AMOUNT", "N"), ("ID",)),
    "CUSTOMERS": Shape(("CITY", "TOWN", "N"), ("CUSTOMER",), is_table=True),
}
AMOUNTS = (20, 50, 70)  # limits of LARGE
JITTER_MS = 20_000
SETTLE_POLL_MS = 1_000
FAILED_POLL_MS = 300
SCHEMAS = "a row has the schema that it refers to"
FRAGILE = "FRAGILE"  # a table whose query must fail


@dataclass(frozen=True, slots=True)
class Query:
    """A stream or table that is created from others."""

    select: str
    shape: Shape
    expected: reference.Expected | None = None  # None: see SqlWorkload
    needs: tuple[str, ...] = ()


QUERIES: Mapping[str, Query] = {
    "LARGE": Query(
        "id, customer, amount FROM orders WHERE amount > {}", Shape(("CUSTOMER", "AMOUNT"), ("ID",))
    ),
    "BY_CUSTOMER": Query(
        "customer, id, amount FROM orders PARTITION BY customer",
        Shape(("ID", "AMOUNT"), ("CUSTOMER",)),
        reference.by_customer,
    ),
    "WITH_CITY": Query(
        "o.customer AS customer, o.id AS id, c.city AS city FROM by_customer o "
        "JOIN customers c ON o.customer = c.customer",
        Shape(("ID", "CITY"), ("CUSTOMER",)),
        reference.with_city,
        ("BY_CUSTOMER",),
    ),
    "TOTALS": Query(
        "customer, COUNT(*) AS orders, SUM(amount) AS amount FROM orders GROUP BY customer",
        Shape(("ORDERS", "AMOUNT"), ("CUSTOMER",), is_table=True),
        reference.totals,
    ),
    "PER_MINUTE": Query(
        "customer, COUNT(*) AS orders FROM orders WINDOW TUMBLING (SIZE 1 MINUTE) "
        "GROUP BY customer",
        Shape(("ORDERS",), ("CUSTOMER",), window="tumbling", is_table=True),
        reference.per_minute,
    ),
    "SESSIONS": Query(
        "customer, COUNT(*) AS orders FROM orders WINDOW SESSION (15 SECONDS) GROUP BY customer",
        Shape(("ORDERS",), ("CUSTOMER",), window="session", is_table=True),
        reference.sessions,
    ),
    "COPY": Query(
        "* FROM customers",
        Shape(("CITY", "TOWN", "N", "NOTE"), ("CUSTOMER",), is_table=True),
        reference.copy_of_customers,
    ),
    "BY_TOWN": Query(
        "town, COUNT(*) AS people FROM customers GROUP BY town",
        Shape(("PEOPLE",), ("TOWN",), is_table=True),
        reference.by_town,
    ),
}
KINDS: Sequence[tuple[str, ...]] = (
    ("LARGE",),
    ("BY_CUSTOMER", "WITH_CITY"),
    ("TOTALS",),
    ("PER_MINUTE",),
    ("SESSIONS",),
    ("COPY",),
    ("BY_TOWN",),
)


@dataclass(frozen=True, slots=True)
class CreatedSource:
    """The topic and format of a stream or table, which restarts must not change."""

    topic: str
    value_format: str


@dataclass(slots=True)
class SqlWorkload:
    """The script, and its known results; it survives the killed process."""

    random: Random
    has_schemas: bool = False  # rows are written with schemas of a registry
    script: Script = field(default_factory=lambda: Script([]))
    created: dict[str, CreatedSource] = field(default_factory=dict)
    acknowledged: dict[str, set[object]] = field(default_factory=dict)  # numbers by source
    tries: Counter[object] = field(
        default_factory=Counter
    )  # of inserting orders: each may have written one
    paused: dict[str, Result] = field(default_factory=dict)  # their results before the pause
    limits: list[tuple[int, int]] = field(default_factory=list)  # of LARGE: first N, limit
    names: list[str] = field(default_factory=list)  # of existing queries
    _orders: int = 0
    _updates: int = 0
    _has_note: bool = False

    def __post_init__(self) -> None:
        self.script = Script(list(self._steps()))

    # --- the script -----------------------------------------------------------------------------

    def _steps(self) -> Iterator[Step]:
        random = self.random
        kinds = random.sample(KINDS, random.choice((2, 3)))
        wanted = [name for kind in kinds for name in kind]
        altered = bool({"COPY", "BY_TOWN"} & set(wanted)) and random.random() < 0.7
        # DELIMITED rows without all columns cannot be read.
        form = ", value_format='JSON'" if altered else ""
        form = ", value_format='JSON_SR'" if self.has_schemas else form
        yield self._create_source_step(
            "CREATE STREAM orders (id STRING KEY, customer STRING, amount INT, n INT) "
            f"WITH (kafka_topic='orders', partitions=2{form});",
            "ORDERS",
        )
        yield self._create_source_step(
            "CREATE TABLE customers (customer STRING PRIMARY KEY, city STRING, town STRING, n INT) "
            f"WITH (kafka_topic='customers', partitions=2{form});",
            "CUSTOMERS",
        )
        yield self._insert_step("customers", [self._customer(name) for name in CUSTOMERS])
        for name in wanted:
            yield self._create_query_step(name)
        changes: list[Callable[[], Iterator[Step]]] = [partial(self._pause, wanted)] * 2
        changes += [partial(self._create_again, wanted), self._nothing]
        changes += [self._replace_large] * 2 if "LARGE" in wanted else []
        changes += [self._fail] if random.random() < 0.3 else []
        rounds = [random.choice(changes) for _ in range(random.choice((2, 3)))]
        if altered:
            rounds.insert(random.randrange(len(rounds) + 1), partial(self._add_column, wanted))
        for change in rounds:
            yield self.insert_orders()
            if random.random() < 0.5:
                yield self._insert_customers()
            yield from change()
        yield self.insert_orders()

    def insert_orders(self) -> Step:
        """A step that inserts some orders."""
        count = self.random.choice((3, 8))
        rows = [self._order(n) for n in range(self._orders, self._orders + count)]
        self._orders += count
        return self._insert_step("orders", rows)

    def insert_at_once(self) -> Sequence[Step]:
        """Steps that insert orders, usually right after rows of customers."""
        orders = self.insert_orders()
        return [self._insert_customers(), orders] if self.random.random() < 0.7 else [orders]

    def _order(self, n: int) -> dict[str, object]:
        time_ms = START_MS + 60_000 + n * 7_000 + self.random.randrange(JITTER_MS)
        return {
            "rowtime": time_ms,
            "id": f"o{n}",
            "customer": self.random.choice(CUSTOMERS),
            "amount": self.random.randrange(100),
            "n": n,
        }

    def _customer(self, name: str) -> dict[str, object]:
        n, self._updates = self._updates, self._updates + 1
        row: dict[str, object] = {
            "rowtime": START_MS + n,
            "customer": name,
            "city": f"city of {name}",
            "town": self.random.choice(("x", "y", "z")),
            "n": n,
        }
        return {**row, "note": f"note {n}"} if self._has_note else row

    def _insert_customers(self) -> Step:
        count = self.random.choice((1, 3))
        return self._insert_step(
            "customers", [self._customer(self.random.choice(CUSTOMERS)) for _ in range(count)]
        )

    def _insert_step(self, source: str, rows: Sequence[Mapping[str, object]]) -> Step:
        return insert_step(source, rows, numbers=self._numbers, send=self._send)

    def _numbers(self, server: ScriptServer, source: str) -> Collection[object]:
        return self.acknowledged.get(source.upper(), set()) | {
            row.get("N") for row in self._rows(server.reading, source.upper())
        }

    def _send(self, server: ScriptServer, source: str, row: Mapping[str, object]) -> None:
        self.tries[source, row["n"]] += 1
        server.execute(insert(source, row))
        self.acknowledged.setdefault(source.upper(), set()).add(row["n"])
        server.on_acknowledged()

    def _create_query_step(self, name: str, text: str = "CREATE") -> Step:
        query = QUERIES[name]
        kind = "TABLE" if query.shape.is_table else "STREAM"
        select, first = query.select, self._orders if "REPLACE" in text else 0
        limit = self.random.choice(AMOUNTS)
        selected = f"AS SELECT {select.format(limit)};"

        def statement() -> str:
            if "REPLACE" not in text:
                return f"{text} {kind} {name} {selected}"
            made = self.created[name]  # which may differ from the settings of this start
            place = f"kafka_topic='{made.topic}', value_format='{made.value_format}'"
            return f"{text} {kind} {name} WITH ({place}) {selected}"

        def after(server: ScriptServer) -> None:
            self._set_created(server, name)
            if name == "LARGE":
                earlier = [each for each in self.limits if each[0] < first]
                self.limits = [*earlier, (first, limit)]

        return Step(
            f"make {name}",
            lambda server: create_step(statement()).run(server),
            lambda server: create_step(statement()).is_done(server),
            after,
        )

    def _create_source_step(self, text: str, name: str) -> Step:
        return replace(create_step(text), after=lambda server: self._set_created(server, name))

    def _set_created(self, server: ScriptServer, name: str) -> None:
        source = server.engine.state.catalog.sources[name]
        self.created[name] = CreatedSource(source.topic, source.value_format.name)
        if name in QUERIES and name not in self.names:
            self.names.append(name)

    # --- changes --------------------------------------------------------------------------------

    def _nothing(self) -> Iterator[Step]:
        yield self.settle_step()

    def _pause(self, wanted: Sequence[str]) -> Iterator[Step]:
        name = self.random.choice(wanted)
        yield self.settle_step()

        def keep(server: ScriptServer) -> None:
            server.wait(10_000)
            self.paused[name] = self.result(server.reading, name)

        def check(server: ScriptServer) -> None:
            server.wait(20_000)
            if found := reference.difference(
                self.result(server.reading, name), self.paused.get(name, Result())
            ):
                raise Violation("a paused query does nothing", f"{name} {found}")

        yield control_step("PAUSE", name)
        yield Step(f"keep {name}", keep)
        yield self.insert_orders()
        yield Step(f"check {name}", check)
        yield control_step("RESUME", name)
        yield Step(f"go on with {name}", lambda server: self.paused.pop(name, None))

    def _replace_large(self) -> Iterator[Step]:
        yield self.settle_step(committed="LARGE")
        yield self._create_query_step("LARGE", "CREATE OR REPLACE")

    def _add_column(self, wanted: Sequence[str]) -> Iterator[Step]:
        yield self.settle_step()
        yield add_column_step("customers", "note", "STRING", kind="TABLE")
        self._has_note = True
        for name in ("COPY", "BY_TOWN"):
            if name in wanted:
                yield self._create_query_step(name, "CREATE OR REPLACE")
        yield self._insert_customers()

    def _create_again(self, wanted: Sequence[str]) -> Iterator[Step]:
        needed = {each for name in wanted for each in QUERIES[name].needs}
        name = self.random.choice([each for each in wanted if each not in needed])
        kind = "TABLE" if QUERIES[name].shape.is_table else "STREAM"

        def forget(server: ScriptServer) -> None:
            if name in self.names:
                self.names.remove(name)

        yield Step(f"forget {name}", forget)
        if self.random.random() < 0.5:
            yield control_step("TERMINATE", name)
        # A server with other settings may create another topic.
        yield replace(drop_step(kind, name), after=lambda server: self.created.pop(name, None))
        yield self._create_query_step(name)

    def _fail(self) -> Iterator[Step]:
        """Make a query fail and drop it, which must leave nothing behind."""
        table = f"CREATE TABLE {FRAGILE} AS SELECT kind, COUNT(*) AS n FROM risky GROUP BY kind;"
        made = create_step(table)
        yield create_step(
            "CREATE STREAM risky (id STRING KEY, kind STRING) "
            "WITH (kafka_topic='risky', value_format='JSON', partitions=1);"
        )
        yield replace(
            made,
            run=lambda server: server.engine.execute(
                table, {"ksql.fail.on.deserialization.error": True}
            ),
        )
        yield Step("insert what is not JSON", _write_invalid_json)
        dropped = drop_step("TABLE", FRAGILE)

        def drop(server: ScriptServer) -> None:
            while not _has_failed(server, FRAGILE):
                server.wait(FAILED_POLL_MS)
            dropped.run(server)

        yield replace(dropped, run=drop)
        yield drop_step("STREAM", "risky")

    def settle_step(self, committed: str = "") -> Step:
        """A step that waits for the expected results."""

        def run(server: ScriptServer) -> None:
            while self.differences(server.reading):
                server.wait(SETTLE_POLL_MS)
            while committed and self._lag(server, committed):
                server.wait(SETTLE_POLL_MS)

        return Step("settle", run)

    def _lag(self, server: ScriptServer, name: str) -> int:
        """The lag of a query on orders."""
        topic, query_id = self.created["ORDERS"].topic, writer(server, name)
        group = server.engine.commands.launcher.application_id(str(query_id))
        with admin(server.engine.commands.launcher.clients) as cluster:
            partitions = [TopicPartition(topic, number) for number in range(2)]
            ends = cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP)).all()
            committed = cluster.list_group_offsets(group, partitions).values
            return sum(
                ends[tp].offset - (committed[tp].offset if tp in committed else 0)
                for tp in partitions
            )

    # --- results --------------------------------------------------------------------------------

    def _rows(self, reading: TopicReading, name: str) -> Iterator[dict[str, object]]:
        made = self.created[name]
        shape = SOURCES[name] if name in SOURCES else QUERIES[name].shape
        return reference.rows(reading.records(made.topic), shape, made.value_format)

    def inputs(self, reading: TopicReading) -> Inputs:
        """The rows of the sources; raises if acknowledged ones are missing."""
        inputs = Inputs()
        numbers: dict[str, set[object]] = {name: set() for name in SOURCES}
        for row in self._rows(reading, "ORDERS"):
            numbers["ORDERS"].add(row["N"])
            inputs.orders.append(
                Order(
                    str(row["ID"]),
                    str(row["CUSTOMER"]),
                    int(str(row["AMOUNT"])),
                    int(str(row["N"])),
                    int(str(row["TIME"])),
                )
            )
        for row in self._rows(reading, "CUSTOMERS"):
            numbers["CUSTOMERS"].add(row["N"])
            inputs.towns.add(row["TOWN"])
            inputs.customers[str(row["CUSTOMER"])] = row
        lost = self.acknowledged.get("ORDERS", set()) - numbers["ORDERS"]
        if lost:
            raise Violation(
                "no acknowledged record is lost", f"rows of ORDERS: {sorted(map(str, lost))}"
            )
        return inputs

    def result(self, reading: TopicReading, name: str) -> Result:
        """The result of a query."""
        counts = reference.result(self._rows(reading, name), QUERIES[name].shape)
        return Result(
            {row: count for row, count in counts.items() if not self._is_optional(name, row)}
        )

    def _is_optional(self, name: str, row: tuple[object, ...]) -> bool:
        """Whether a row is optional in a result.

        That is a town without customers; or an order between two limits that was sent twice, and so
        may have arrived before and after a change.
        """
        if name == "BY_TOWN":
            return not row[-1]
        if name != "LARGE":
            return False
        limits = [limit for _, limit in self.limits]
        number, amount = int(str(row[0])[1:]), int(str(row[2]))
        return self.tries["orders", number] > 1 and min(limits) < amount <= max(limits)

    def expected(self, name: str, given: Inputs) -> Result:
        """The expected result of a query."""
        if name in self.paused:
            return self.paused[name]
        compute = QUERIES[name].expected
        return self._large(given) if compute is None else compute(given)

    def _large(self, given: Inputs) -> Result:
        counts = Result()
        for each in given.orders:
            limit = max(pair for pair in self.limits if pair[0] <= each.n)[1]
            row = (each.id, each.customer, each.amount)
            if each.amount > limit and not self._is_optional("LARGE", row):
                counts[row] += 1
        return counts

    def check_pull(self, server: ScriptServer) -> None:
        """Check that a pull query returns the rows of the table's topic."""
        if "TOTALS" not in self.names:
            return
        result = server.engine.query("SELECT customer, orders, amount FROM totals;")
        rows = Counter(tuple(row.values) for row in result.rows())
        expected = self.expected("TOTALS", self.inputs(server.reading))
        if difference := reference.difference(rows, expected):
            raise Violation("pull queries return the computed rows", f"TOTALS {difference}")

    def check_schemas(self, reading: TopicReading, registry: SchemaRegistry) -> None:
        """Check that the registry has the schemas of rows, with their columns."""
        for name in (*SOURCES, *self.names):
            if self.created[name].value_format != "JSON_SR":
                continue
            for row in self._rows(reading, name):
                if "SCHEMA" not in row:
                    continue
                try:
                    schema = json.loads(registry.schema(int(str(row["SCHEMA"]))).text)
                except RegistryError as error:
                    raise Violation(SCHEMAS, f"{name} {row}: {error}") from error
                shape = SOURCES[name] if name in SOURCES else QUERIES[name].shape
                columns = {each for each in row if each in shape.columns}
                if not columns <= schema["properties"].keys():
                    raise Violation(SCHEMAS, f"{name} {row}: {sorted(schema['properties'])}")

    def differences(self, reading: TopicReading) -> dict[str, str]:
        """The queries whose results differ from the expected ones."""
        given = self.inputs(reading)
        differences = {
            name: reference.difference(self.result(reading, name), self.expected(name, given))
            for name in self.names
        }
        return {name: each for name, each in differences.items() if each}


def _write_invalid_json(server: ScriptServer) -> None:
    topic = server.engine.state.catalog.sources["RISKY"].topic
    with producer(server.engine.commands.launcher.clients) as out:
        out.send(topic, b"not json", b"a").result(30_000)


def _has_failed(server: ScriptServer, name: str) -> bool:
    """Whether a query is in ERROR on one of the servers."""
    query_id = str(writer(server, name))
    engines = [each for each in (server.engine, server.other()) if each is not None]
    queries = [each.commands.running.get(query_id) for each in engines]
    return any(each is not None and each.runtime.state is QueryState.ERROR for each in queries)
