"""Every endpoint and every code of the registry's interface, by cases in `contract/`."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import httpx
import pytest

from broker import Broker
from broker.registry.registry import Registry
from broker.registry.rest import registry_application
from broker.registry.server import RegistryServer
from tests.broker.registry.contract_cases import Case, matches, read_cases, run_case

Registries = Callable[[], AbstractContextManager[Registry]]


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registries]:
    """Makes empty registries, all on one broker."""
    numbers = itertools.count()

    @contextmanager
    def fresh() -> Iterator[Registry]:
        with Registry(broker, topic=f"schemas-{next(numbers)}") as registry:
            yield registry

    with Broker(data_directory=str(tmp_path_factory.mktemp("registry"))) as broker:
        yield fresh


@pytest.mark.parametrize("case", read_cases(), ids=str)
def test_answers_are_as_written_down(case: Case, registries: Registries) -> None:
    with registries() as registry:
        transport = httpx.ASGITransport(registry_application(registry), raise_app_exceptions=True)

        async def send(request: httpx.Request) -> httpx.Response:
            async with httpx.AsyncClient(transport=transport) as client:
                return await client.send(request)

        with asyncio.Runner() as runner:
            run_case(case, lambda request: runner.run(send(request)))


@pytest.mark.slow
@pytest.mark.parametrize("case", read_cases("http", "registering"), ids=str)
def test_answers_over_a_socket_are_the_same(case: Case, registries: Registries) -> None:
    with (
        registries() as registry,
        RegistryServer(registry, listen="127.0.0.1:0") as server,
        httpx.Client(timeout=60) as client,
    ):

        def send(request: httpx.Request) -> httpx.Response:
            host, _, port = server.address.rpartition(":")
            request.url = request.url.copy_with(host=host, port=int(port))
            request.headers["Host"] = server.address
            return client.send(request)

        run_case(case, send)


CODES = {
    *(400, 404, 405, 406, 415, 422),
    *(40401, 40402, 40403, 40404, 40405, 40406, 40407, 40408, 40409, 40901),
    *(42201, 42202, 42203, 42204, 42205, 42206, 42208),
}


def test_every_code_has_a_case() -> None:
    steps = [step for case in read_cases() for step in case.steps]
    told = {step["body"].get("error_code") for step in steps if isinstance(step["body"], dict)}
    assert told - {None} == CODES
    assert len(steps) >= 150


def test_a_wildcard_matches_anything_and_nothing_else_does() -> None:
    assert matches({"guid": "x", "id": 1}, {"guid": "*", "id": 1})
    assert matches("no JSON: line 1", "no JSON: *")
    assert not matches("JSON", "no JSON: *")
    assert not matches(1, "no JSON: *")
    assert not matches({"guid": "x", "id": 1}, {"guid": "*", "id": 2})
    assert not matches({"id": 1}, {"id": 1, "version": 1})
    assert not matches([1, 2], [1])
    assert not matches(True, 1)
