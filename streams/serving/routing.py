"""Routing: finds the instances that can answer a query, and sends it to them over HTTP."""

import http.client
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import orjson

from streams.errors import StreamsError
from streams.runtime.metadata import HostMetadata

TIMEOUT_S = 10.0


class HostUnreachable(StreamsError):
    """Another instance did not respond."""


def query_instance(
    host: str, store: str, form: str, parameters: Mapping[str, str]
) -> tuple[int, object]:
    """Send a query of its local partitions to one instance; returns status and JSON."""
    query = urlencode({**parameters, "local": "true"}, errors="surrogateescape")
    name, _, port = host.rpartition(":")
    if not name or not port.isdecimal():
        raise HostUnreachable(
            f'an instance has the address "{host}", which is not valid',
            hint='every instance needs application_server="host:port" and a QueryServer',
        )
    connection = http.client.HTTPConnection(name.strip("[]"), int(port), timeout=TIMEOUT_S)
    try:
        connection.request("GET", f"/stores/{quote(store, safe='')}/{form}?{query}")
        response = connection.getresponse()
        return response.status, orjson.loads(response.read())
    except (OSError, http.client.HTTPException, orjson.JSONDecodeError) as error:
        raise HostUnreachable(
            f'the instance at "{host}" did not respond: {error}',
            hint="it may be stopping; retry after the next rebalance, or query with stale=true",
        ) from error
    finally:
        connection.close()


def holders(hosts: list[HostMetadata], store: str, partition: int, *, stale: bool) -> list[str]:
    """Instances that have a partition of a store: the active one; with `stale`, also standbys."""
    active = [host.host for host in hosts if partition in host.active.get(store, ())]
    if not stale:
        return active
    return active + [host.host for host in hosts if partition in host.standby.get(store, ())]
