"""ALTER SYSTEM: settings of the server, kept in the command topic."""

from pathlib import Path

import pytest

from broker.broker import Broker
from sql.engine.entities import PropertiesList
from sql.errors import StatementFailed
from tests.sql.engine.engines import engine_of, status

pytestmark = pytest.mark.slow

PULLS = "ksql.query.pull.table.scan.enabled"


def test_a_setting_is_kept_over_restarts(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        assert engine.config.flag(PULLS)
        [altered] = engine.execute(f"ALTER SYSTEM '{PULLS}'='false';")
        assert status(altered).command_id == f"cluster/{PULLS}/alter"
        assert f"{PULLS} was set to false" in status(altered).command_status.message
        assert not engine.config.flag(PULLS)
    with engine_of(broker, tmp_path) as engine:
        assert not engine.config.flag(PULLS)
        [shown] = engine.execute("SHOW PROPERTIES;")
        assert isinstance(shown, PropertiesList)
        assert [each.value for each in shown.properties if each.name == PULLS] == ["false"]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER SYSTEM 'ksql.service.id'='other';", "prohibited"),
        ("ALTER SYSTEM 'no.such'='x';", "Unknown property"),
        (f"ALTER SYSTEM '{PULLS}'='maybe';", "either true or false"),
    ],
)
def test_what_cannot_be_set_is_refused(
    broker: Broker, tmp_path: Path, statement: str, why: str
) -> None:
    with engine_of(broker, tmp_path) as engine:
        with pytest.raises(StatementFailed, match=why):
            engine.execute(statement)
        assert engine.config.flag(PULLS)
