"""Options that commands share."""

import pytest
from click import UsageError

from millstream.commands.options import BOOTSTRAP_TIMEOUT_MS, client_settings, key_values


def test_client_settings_are_strings_as_they_were_given() -> None:
    given = ("sasl.password=0123", "sasl.username=true", "a.b=x=y", "c= z ", "linger.ms=5", "d=")
    assert client_settings(given) == {
        "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS,
        "sasl_password": "0123",
        "sasl_username": "true",
        "a_b": "x=y",
        "c": " z ",
        "linger_ms": "5",
        "d": "",
    }


def test_commands_do_not_wait_long_for_a_missing_broker_by_default() -> None:
    assert BOOTSTRAP_TIMEOUT_MS < 3_000
    given = client_settings(("bootstrap.timeout.ms=60000",))
    assert given == {"bootstrap_timeout_ms": "60000"}


def test_a_pair_needs_an_equals_sign() -> None:
    for read in (client_settings, key_values):
        with pytest.raises(UsageError, match="KEY=VALUE"):
            read(("alone",))
