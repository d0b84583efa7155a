"""`millstream status`: the state of a running `millstream up`."""

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

import click
import httpx

from broker.client import admin
from broker.errors import MillstreamError
from connect.client import ConnectClient
from millstream.commands.connectors import connector_rows
from millstream.commands.options import json_option
from millstream.commands.platform_options import platform_options
from millstream.output import Output, Row
from millstream.settings import PlatformSettings

LIMIT_S = 3.0
FAILED = ("FAILED", "ERROR", "UNRESPONSIVE")


@dataclass(slots=True)
class PlatformStatus:
    """The state of the services, connectors and queries."""

    services: list[Row] = field(default_factory=list)
    connectors: list[Row] = field(default_factory=list)
    queries: list[Row] = field(default_factory=list)

    def check(self, service: str, address: str, read_details: Callable[[], str]) -> None:
        """Add the details of a service, or the reason why it does not respond."""
        try:
            state, details = "up", read_details()
        except (MillstreamError, OSError, httpx.HTTPError) as error:
            state, details = "down", str(error).partition("\n")[0]
        self.services.append(
            {"service": service, "address": address, "state": state, "details": details}
        )

    @property
    def is_healthy(self) -> bool:
        """Whether all services respond and no connector, task or query has failed."""
        states = [str(each["state"]) for each in (*self.connectors, *self.queries)]
        tasks = [str(each["tasks"]) for each in self.connectors]
        failed = any(word in text for word in FAILED for text in (*states, *tasks))
        return not failed and all(each["state"] == "up" for each in self.services)


@click.command()
@platform_options
@json_option
def status(settings: PlatformSettings, output: Output) -> None:
    """Show the state of the services of `millstream up`.

    Exit code 1 if a service does not respond, or if a connector, task or query has failed.
    """
    platform = PlatformStatus()
    with output.progress("checking"):
        address = settings.listen("broker")
        platform.check("broker", address, lambda: _broker(address))
        for service, read_details in (
            ("registry", _registry),
            ("connect", _connect),
            ("sql", _sql),
        ):
            url = settings.url(service)
            platform.check(service, url, lambda: read_details(url, platform))  # noqa: B023 - called at once
    _show(platform, output)
    if not platform.is_healthy:
        sys.exit(1)


def _show(platform: PlatformStatus, output: Output) -> None:
    if output.as_json:
        output.record(
            {
                "ok": platform.is_healthy,
                "services": [_json_service(each) for each in platform.services],
                "connectors": platform.connectors,
                "queries": platform.queries,
            }
        )
        return
    output.rows(platform.services, title="services")
    if platform.connectors:
        output.rows(platform.connectors, title="connectors")
    if platform.queries:
        output.rows(platform.queries, title="queries")


def _json_service(service: Row) -> Row:
    # The name in JSON; scripts depend on it.
    return dict(
        {name: value for name, value in service.items() if name != "details"},
        told=service["details"],
    )


def _broker(address: str) -> str:
    with admin(address) as cluster:
        limit_ms = int(LIMIT_S * 1000)
        cluster_id = cluster.describe_cluster(timeout_ms=limit_ms).cluster_id
        topics = len(cluster.list_topics(timeout_ms=limit_ms))
        groups = len(cluster.list_groups(timeout_ms=limit_ms))
    return f"cluster {cluster_id}, {topics} topics, {groups} groups"


def _registry(url: str, _: PlatformStatus) -> str:
    subjects = httpx.get(f"{url}/subjects", timeout=LIMIT_S).raise_for_status().json()
    return f"{len(subjects)} subjects"


def _connect(url: str, platform: PlatformStatus) -> str:
    worker = ConnectClient(url, timeout_s=LIMIT_S)
    version = worker.about()["version"]
    platform.connectors = connector_rows(worker)
    return f"version {version}, {len(platform.connectors)} connectors"


def _sql(url: str, platform: PlatformStatus) -> str:
    from sql.client import SqlClient

    with closing(SqlClient(url)) as server:
        version = server.info().get("version")
        (listed,) = server.execute("SHOW QUERIES;")
    platform.queries = [
        {"query": each["id"], "writes": each["sinks"], "state": each["state"]}
        for each in listed["queries"]
    ]
    return f"version {version}, {len(platform.queries)} queries"
