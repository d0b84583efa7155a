"""The contract table is what a real Kafka Connect answers."""

import os
import time
from collections.abc import Iterator

import httpx
import orjson
import pytest

from tests.connect.rest.contract_table import HttpRequest, answered, check_case, table
from tests.support.kafka_connect_worker import KafkaConnect, skip_without_kafka_connect
from tests.support.millstream_broker import MillstreamBroker

# The other tests compare our answers with the table, in every run.
pytestmark = [pytest.mark.peer, pytest.mark.long]


@pytest.fixture(scope="module")
def kafka_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpRequest]:
    folder = tmp_path_factory.mktemp("kafka-connect")
    skip_without_kafka_connect()
    with (
        MillstreamBroker(folder / "broker") as broker,
        KafkaConnect(folder / "connect", bootstrap=broker.bootstrap) as worker,
        # Kafka's HTTP server closes connections when it likes: each request has its own.
        httpx.Client(
            base_url=worker.url, timeout=120.0, limits=httpx.Limits(max_keepalive_connections=0)
        ) as client,
    ):
        asked = HttpRequest(client, worker.version, folder / "files", is_ours=False)
        asked.prepare()
        yield asked


def test_kafka_connect_answers_as_the_table_says(kafka_connect: HttpRequest) -> None:
    if os.environ.get("REWRITE"):
        rewrite(kafka_connect)
        return
    for path, cases in table():
        for case in cases:
            try:
                check_case(case, kafka_connect)
            except AssertionError as error:
                raise AssertionError(f"{path.stem}: {case['name']}: {error}") from error


def rewrite(asked: HttpRequest) -> None:
    """Put Kafka Connect's answers into the table; what comes eventually gets some seconds."""
    for path, cases in table():
        for case in cases:
            for step in case["steps"]:
                if step.get("eventually"):
                    time.sleep(4.0)
                found = answered(step, asked)
                if "only" in step:
                    found["answer"] = {name: found["answer"][name] for name in step["only"]}
                step.update({part: each for part, each in found.items() if each != {}})
        path.write_bytes(orjson.dumps(cases, option=orjson.OPT_INDENT_2) + b"\n")
