"""Two databases are copied into each other through SQL, while everything is killed at random."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.connect.fire.pipeline import Platform, running_platform, start_pipeline
from tests.connect.fire.tables import PATIENCE_S, Copy, SourceTable, wait_for_copies
from tests.support.mariadb import MariadbServer
from tests.support.peer import PeerMissing, skip_without_peer, wait_until
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.peer]

# Of both tables together.
ROWS = 100_000
ROWS_PER_TRANSACTION = 2000


@pytest.fixture
def servers() -> Iterator[tuple[PostgresServer, MariadbServer]]:
    """Databases that this test may kill."""
    try:
        postgres, mariadb = PostgresServer(), MariadbServer()
    except PeerMissing as missing:
        skip_without_peer(f"no database: {missing}")
    with postgres, mariadb:
        yield postgres, mariadb


class Writer(threading.Thread):
    """Fills and changes the tables, as fast as their databases let it."""

    def __init__(self, sources: list[SourceTable], *, rounds: int) -> None:
        super().__init__(name="writer", daemon=True)
        self._sources = sources
        self._rounds = rounds
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            # The first transaction was before.
            for source in self._in_turn(ROWS // 2 // ROWS_PER_TRANSACTION - 1):
                source.add(ROWS_PER_TRANSACTION)
            for source in self._in_turn(self._rounds):
                source.change(updates=400, deletes=100)
        except BaseException as error:
            self.error = error

    def _in_turn(self, times: int) -> Iterator[SourceTable]:
        for _ in range(times):
            yield from self._sources

    def finish(self) -> None:
        """Waits for the last transaction."""
        self.join(PATIENCE_S)
        assert not self.is_alive(), "the writer did not come to an end"
        if self.error is not None:
            raise self.error


def victims_of(
    platform: Platform, postgres: PostgresServer, mariadb: MariadbServer
) -> dict[str, Callable[[], None]]:
    """What can be killed; everything comes back at once."""

    def kill_worker() -> None:
        platform.worker.kill()
        platform.worker.start()

    def kill_broker() -> None:
        platform.broker.kill()
        platform.broker.start()

    def kill_postgres() -> None:
        postgres.kill()
        postgres.start()

    def kill_mariadb() -> None:
        mariadb.kill()
        mariadb.start()

    return {
        "worker": kill_worker,
        "broker": kill_broker,
        "postgres": kill_postgres,
        "mariadb": kill_mariadb,
    }


@contextmanager
def note(text: str) -> Iterator[None]:
    """Says with a failure what had happened before."""
    try:
        yield
    except BaseException as failed:
        failed.add_note(text)
        raise


def copy_under_fire(
    folder: Path, servers: tuple[PostgresServer, MariadbServer], *, kills: int, seed: int
) -> None:
    random = Random(seed)
    postgres, mariadb = servers
    with running_platform(folder) as platform:
        sources = [
            SourceTable(postgres, "shop", Random(seed + 1)),
            SourceTable(mariadb, "store", Random(seed + 2)),
        ]
        copies = [Copy(mariadb, "copies", "shop_copy"), Copy(postgres, "copies", "store_copy")]
        pairs = list(zip(sources, copies, strict=True))
        for source in sources:
            source.add(ROWS_PER_TRANSACTION)
        topics = [start_pipeline(platform, *pair) for pair in pairs]
        victims = victims_of(platform, postgres, mariadb)
        # Each kind is killed; the rest is up to chance.
        names = [*victims, *random.choices([*victims], k=kills - len(victims))]
        random.shuffle(names)
        # The last ones fall when most rows are through, among updates and deletes.
        moments = sorted(random.randrange(1, int(ROWS * 0.95)) for _ in names)
        writer = Writer(sources, rounds=2 * kills)
        writer.start()
        for name, moment in zip(names, moments, strict=True):
            with note(f"killed in this order: {list(zip(names, moments, strict=True))}"):
                wait_until(
                    lambda moment=moment: platform.output_count(topics) >= moment,  # type: ignore[misc]
                    f"output {moment}",
                    timeout_s=PATIENCE_S,
                )
                victims[name]()
        writer.finish()
        wait_for_copies(pairs, platform.check_health)
        for source, copy in pairs:
            assert copy.rows() == source.live()
            assert 0 < len(source.live()) < len(source.items) == ROWS // 2


@pytest.mark.timeout(600)
def test_a_hundred_thousand_rows_arrive_exactly_in_spite_of_ten_kills(
    tmp_path: Path, servers: tuple[PostgresServer, MariadbServer]
) -> None:
    copy_under_fire(tmp_path, servers, kills=10, seed=1)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_rows_arrive_exactly_in_spite_of_fifty_kills(
    tmp_path: Path, servers: tuple[PostgresServer, MariadbServer]
) -> None:
    copy_under_fire(tmp_path, servers, kills=50, seed=2)
