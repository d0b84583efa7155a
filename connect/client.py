"""ConnectClient: a client of the REST API of a Connect worker, Millstream's or Kafka's.

client = ConnectClient("http://localhost:8083")
client.create("users", {"connector.class": "Datagen", "kafka.topic": "users", ...})
client.status("users")["connector"]["state"]        # "RUNNING"
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from connect.errors import ConnectError

TIMEOUT_S = 120.0  # workers wait for their connectors for up to 90 seconds
ERRORS_FROM = 400
UNREACHABLE = 503

# Any: Connect's answers are JSON of many shapes.
Json = Any


class ConnectRefused(ConnectError):
    """An error response of a worker, with its HTTP status."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        """The status and the worker's message."""
        super().__init__(message, hint=hint)
        self.status = status


class ConnectClient:
    """A client of one worker; every method may raise ConnectRefused."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        """The URL of the worker: "http://host:8083"."""
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s

    # --- connectors -------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all connectors."""
        return [str(each) for each in self._ask("GET", "/connectors")]

    def create(
        self, name: str, config: Mapping[str, str], *, initial_state: str | None = None
    ) -> Json:
        """Create a connector; returns the same as `describe`."""
        state = {} if initial_state is None else {"initial_state": initial_state}
        body = {"name": name, "config": dict(config), **state}
        return self._ask("POST", "/connectors", body)

    def put_config(self, name: str, config: Mapping[str, str]) -> Json:
        """Create a connector or replace its configuration; returns the same as `describe`."""
        return self._ask("PUT", f"{_path(name)}/config", dict(config))

    def patch_config(self, name: str, changes: Mapping[str, str | None]) -> Json:
        """Change single settings, None removes one; returns the same as `describe`."""
        return self._ask("PATCH", f"{_path(name)}/config", dict(changes))

    def delete(self, name: str) -> None:
        """Delete a connector."""
        self._ask("DELETE", _path(name))

    def describe(self, name: str) -> Json:
        """Name, config, tasks, type."""
        return self._ask("GET", _path(name))

    def status(self, name: str) -> Json:
        """The state of a connector and its tasks."""
        return self._ask("GET", f"{_path(name)}/status")

    def tasks(self, name: str) -> Json:
        """The tasks of a connector with their configurations."""
        return self._ask("GET", f"{_path(name)}/tasks")

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has used."""
        found = self._ask("GET", f"{_path(name)}/topics")
        return [str(each) for each in found.get(name, {}).get("topics", [])]

    # --- states -----------------------------------------------------------------------------

    def pause(self, name: str) -> None:
        """Pause a connector and its tasks."""
        self._ask("PUT", f"{_path(name)}/pause")

    def resume(self, name: str) -> None:
        """Resume a connector and its tasks."""
        self._ask("PUT", f"{_path(name)}/resume")

    def stop(self, name: str) -> None:
        """Stop a connector and its tasks until it is resumed."""
        self._ask("PUT", f"{_path(name)}/stop")

    def restart(self, name: str, *, include_tasks: bool = False, only_failed: bool = False) -> Json:
        """Restart a connector, optionally with its tasks, or only those that have failed."""
        query = f"includeTasks={str(include_tasks).lower()}&onlyFailed={str(only_failed).lower()}"
        return self._ask("POST", f"{_path(name)}/restart?{query}")

    def restart_task(self, name: str, task: int) -> None:
        self._ask("POST", f"{_path(name)}/tasks/{task}/restart")

    # --- offsets ----------------------------------------------------------------------------

    def offsets(self, name: str) -> Json:
        """The offsets of a connector: [{"partition": {...}, "offset": {...}}, ...]."""
        return self._ask("GET", f"{_path(name)}/offsets")["offsets"]

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, object]]) -> str:
        """Change the offsets of a stopped connector; returns the worker's message."""
        body = {"offsets": [dict(each) for each in offsets]}
        return str(self._ask("PATCH", f"{_path(name)}/offsets", body)["message"])

    def reset_offsets(self, name: str) -> str:
        """Reset the offsets of a stopped connector; returns the worker's message."""
        return str(self._ask("DELETE", f"{_path(name)}/offsets")["message"])

    # --- the worker -------------------------------------------------------------------------

    def about(self) -> Json:
        """Version, commit, kafka_cluster_id."""
        return self._ask("GET", "/")

    def plugins(self, *, connectors_only: bool = True) -> list[Json]:
        """The connector plugins, or all plugins."""
        query = f"connectorsOnly={str(connectors_only).lower()}"
        return list(self._ask("GET", f"/connector-plugins?{query}"))

    def validate(self, plugin: str, config: Mapping[str, str]) -> Json:
        path = f"/connector-plugins/{quote(plugin, safe='')}/config/validate"
        return self._ask("PUT", path, dict(config))

    def _ask(self, method: str, path: str, body: Json = None) -> Json:
        try:
            answer = httpx.request(method, f"{self._url}{path}", json=body, timeout=self._timeout_s)
            result = answer.json() if answer.content else None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ConnectRefused(
                UNREACHABLE,
                f"the Connect worker does not respond: {error}",
                hint=f"is a worker running at {self._url}?",
            ) from error
        if answer.status_code >= ERRORS_FROM:
            message = result.get("message") if isinstance(result, dict) else None
            raise ConnectRefused(answer.status_code, str(message or answer.reason_phrase))
        return result


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"
