"""Examples run, and say what their files say."""

from pathlib import Path

import pytest

from examples import consumer_group, embedded_broker, exactly_once, raw_batches

EXAMPLES = Path(embedded_broker.__file__).parent


@pytest.mark.slow
def test_the_embedded_broker_gives_back_the_orders() -> None:
    assert sorted(embedded_broker.main()) == ["alice 12", "alice 30", "bob 7"]


@pytest.mark.slow
def test_exactly_once_shouts_every_word_once() -> None:
    assert exactly_once.main() == ["MILL", "STREAM", "WATER"]


@pytest.mark.slow
def test_raw_batches_copies_all_records() -> None:
    batches, records = raw_batches.main()
    assert records == raw_batches.RECORDS
    assert 0 < batches < records


@pytest.mark.slow
def test_the_group_shares_and_takes_over() -> None:
    together, alone = consumer_group.main()
    assert sorted(number for share in together for number in share) == [0, 1, 2, 3]
    assert alone == [[0, 1, 2, 3]]


def test_every_example_is_in_the_table() -> None:
    table = (EXAMPLES / "README.md").read_text()
    for file in EXAMPLES.glob("*.py"):
        if file.stem != "__init__":
            assert f"`{file.name}`" in table
            assert len(file.read_text().splitlines()) <= 65
