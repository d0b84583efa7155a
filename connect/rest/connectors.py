"""/connectors: creating, changing, describing and deleting connectors."""

from collections.abc import Mapping
from urllib.parse import quote

from broker.rest import Json, Reply
from connect.errors import BadRequest, NotFound
from connect.herder import Herder
from connect.herder.descriptions import ConnectorInfo
from connect.herder.validation import NullableConfig
from connect.rest.connect_request import JSON_BODY, ConnectRequest, ConnectRoute
from connect.rest.replies import (
    ACCEPTED,
    NO_CONTENT,
    info_json,
    status_json,
    task_json,
    task_status_json,
)
from connect.state.config_store import RestartRequest


def _list(herder: Herder, request: ConnectRequest) -> Reply:
    if "expand" not in request.query:
        return Reply(herder.connectors())
    return Reply({name: _expanded(herder, name, request) for name in herder.connectors()})


def _expanded(herder: Herder, name: str, request: ConnectRequest) -> Json:
    found: dict[str, Json] = {}
    try:
        for part in request.query["expand"]:
            if part == "info":
                found["info"] = info_json(herder.info(name))
            elif part == "status":
                found["status"] = status_json(herder.status(name))
    except NotFound:
        pass  # it has just been created or deleted
    return found


def _create(herder: Herder, request: ConnectRequest) -> Reply:
    wanted = request.create_request()
    config = _named(wanted.name, wanted.config)
    return _created(request, herder.create(wanted.name, config, wanted.initial_state))


def _info(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply(info_json(herder.info(request.connector)))


def _config(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply(dict(herder.info(request.connector).config))


def _put_config(herder: Herder, request: ConnectRequest) -> Reply:
    name = request.connector
    info, created = herder.put_config(name, _named(name, request.config()))
    return _created(request, info) if created else Reply(info_json(info))


def _patch_config(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply(info_json(herder.patch_config(request.connector, request.config())))


def _named(name: str, config: NullableConfig) -> NullableConfig:
    """The configuration with its connector's name, which must not contradict it."""
    given = config.get("name")
    if given is not None and given != name:
        raise BadRequest(
            f"Connector name configuration ({given}) doesn't match connector name in the URL "
            f"({name})"
        )
    return config if given is not None else {**_without_name(config), "name": name}


def _without_name(config: NullableConfig) -> Mapping[str, str | None]:
    return {key: text for key, text in config.items() if key != "name"}


def _created(request: ConnectRequest, info: ConnectorInfo) -> Reply:
    location = f"{request.base_url}/connectors/{quote(info.name)}"
    return Reply(info_json(info), 201, {"Location": location})


def _delete(herder: Herder, request: ConnectRequest) -> Reply:
    herder.delete(request.connector)
    return NO_CONTENT


def _status(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply(status_json(herder.status(request.connector)))


def _tasks(herder: Herder, request: ConnectRequest) -> Reply:
    tasks = herder.tasks(request.connector)
    return Reply([{"id": task_json(each.task), "config": dict(each.config)} for each in tasks])


def _task_status(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply(task_status_json(request.task.task, herder.task_status(request.task)))


def _restart(herder: Herder, request: ConnectRequest) -> Reply:
    restart = RestartRequest(request.flag("includeTasks"), request.flag("onlyFailed"))
    if restart == RestartRequest():
        herder.restart_connector(request.connector)
        return NO_CONTENT
    return Reply(status_json(herder.restart(request.connector, restart)), 202)


def _restart_task(herder: Herder, request: ConnectRequest) -> Reply:
    herder.restart_task(request.task)
    return NO_CONTENT


def _pause(herder: Herder, request: ConnectRequest) -> Reply:
    herder.pause(request.connector)
    return ACCEPTED


def _resume(herder: Herder, request: ConnectRequest) -> Reply:
    herder.resume(request.connector)
    return ACCEPTED


def _stop(herder: Herder, request: ConnectRequest) -> Reply:
    herder.stop_connector(request.connector)
    return NO_CONTENT


def _topics(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply({request.connector: {"topics": herder.topics(request.connector)}})


def _reset_topics(herder: Herder, request: ConnectRequest) -> Reply:
    herder.reset_topics(request.connector)
    return ACCEPTED


def _offsets(herder: Herder, request: ConnectRequest) -> Reply:
    found = herder.offsets(request.connector)
    return Reply(
        {"offsets": [{"partition": each.partition, "offset": each.offset} for each in found]}
    )


def _alter_offsets(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply({"message": herder.alter_offsets(request.connector, request.offsets())})


def _reset_offsets(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply({"message": herder.reset_offsets(request.connector)})


ROUTES: tuple[ConnectRoute, ...] = (
    ConnectRoute("GET", "/connectors", _list),
    ConnectRoute("POST", "/connectors", _create, body=JSON_BODY),
    ConnectRoute("GET", "/connectors/{connector}", _info),
    ConnectRoute("DELETE", "/connectors/{connector}", _delete),
    ConnectRoute("GET", "/connectors/{connector}/config", _config),
    ConnectRoute("PUT", "/connectors/{connector}/config", _put_config, body=JSON_BODY),
    ConnectRoute("PATCH", "/connectors/{connector}/config", _patch_config, body=JSON_BODY),
    ConnectRoute("GET", "/connectors/{connector}/status", _status),
    ConnectRoute("POST", "/connectors/{connector}/restart", _restart, body=JSON_BODY),
    ConnectRoute("PUT", "/connectors/{connector}/pause", _pause, body=JSON_BODY),
    ConnectRoute("PUT", "/connectors/{connector}/resume", _resume, body=JSON_BODY),
    ConnectRoute("PUT", "/connectors/{connector}/stop", _stop, body=JSON_BODY),
    ConnectRoute("GET", "/connectors/{connector}/tasks", _tasks),
    ConnectRoute("GET", "/connectors/{connector}/tasks/{task}/status", _task_status),
    ConnectRoute(
        "POST", "/connectors/{connector}/tasks/{task}/restart", _restart_task, body=JSON_BODY
    ),
    ConnectRoute("GET", "/connectors/{connector}/topics", _topics),
    ConnectRoute("PUT", "/connectors/{connector}/topics/reset", _reset_topics, body=JSON_BODY),
    ConnectRoute("GET", "/connectors/{connector}/offsets", _offsets),
    ConnectRoute("PATCH", "/connectors/{connector}/offsets", _alter_offsets, body=JSON_BODY),
    ConnectRoute("DELETE", "/connectors/{connector}/offsets", _reset_offsets),
)
