"""/connectors: making, changing, watching and deleting connectors."""

from collections.abc import Mapping
from urllib.parse import quote

from connect.errors import BadRequest, NotFound
from connect.herder import Herder
from connect.herder.descriptions import ConnectorInfo
from connect.herder.validation import NullableConfig
from connect.rest.answers import (
    ACCEPTED,
    NO_CONTENT,
    Json,
    Reply,
    info_json,
    status_json,
    task_json,
    task_status_json,
)
from connect.rest.endpoint import Endpoints
from connect.rest.http_request import HttpRequest
from connect.state.config_store import RestartRequest


def _list(herder: Herder, request: HttpRequest) -> Reply:
    if "expand" not in request.query:
        return Reply(herder.connectors())
    return Reply({name: _expanded(herder, name, request) for name in herder.connectors()})


def _expanded(herder: Herder, name: str, request: HttpRequest) -> Json:
    found: dict[str, Json] = {}
    try:
        for part in request.query["expand"]:
            if part == "info":
                found["info"] = info_json(herder.info(name))
            elif part == "status":
                found["status"] = status_json(herder.status(name))
    except NotFound:
        pass  # it has just been made, or has just gone
    return found


def _create(herder: Herder, request: HttpRequest) -> Reply:
    wanted = request.create_request()
    config = _named(wanted.name, wanted.config)
    return _created(request, herder.create(wanted.name, config, wanted.initial_state))


def _info(herder: Herder, request: HttpRequest) -> Reply:
    return Reply(info_json(herder.info(request.connector)))


def _config(herder: Herder, request: HttpRequest) -> Reply:
    return Reply(dict(herder.info(request.connector).config))


def _put_config(herder: Herder, request: HttpRequest) -> Reply:
    name = request.connector
    info, created = herder.put_config(name, _named(name, request.config()))
    return _created(request, info) if created else Reply(info_json(info))


def _patch_config(herder: Herder, request: HttpRequest) -> Reply:
    return Reply(info_json(herder.patch_config(request.connector, request.config())))


def _named(name: str, config: NullableConfig) -> NullableConfig:
    """The configuration with its connector's name, which it must not contradict."""
    given = config.get("name")
    if given is not None and given != name:
        raise BadRequest(
            f"Connector name configuration ({given}) doesn't match connector name in the URL "
            f"({name})"
        )
    return config if given is not None else {**_without_name(config), "name": name}


def _without_name(config: NullableConfig) -> Mapping[str, str | None]:
    return {key: text for key, text in config.items() if key != "name"}


def _created(request: HttpRequest, info: ConnectorInfo) -> Reply:
    location = f"{request.base_url}/connectors/{quote(info.name)}"
    return Reply(info_json(info), 201, {"Location": location})


def _delete(herder: Herder, request: HttpRequest) -> Reply:
    herder.delete(request.connector)
    return NO_CONTENT


def _status(herder: Herder, request: HttpRequest) -> Reply:
    return Reply(status_json(herder.status(request.connector)))


def _tasks(herder: Herder, request: HttpRequest) -> Reply:
    tasks = herder.tasks(request.connector)
    return Reply([{"id": task_json(each.task), "config": dict(each.config)} for each in tasks])


def _task_status(herder: Herder, request: HttpRequest) -> Reply:
    return Reply(task_status_json(request.task.task, herder.task_status(request.task)))


def _restart(herder: Herder, request: HttpRequest) -> Reply:
    restart = RestartRequest(request.flag("includeTasks"), request.flag("onlyFailed"))
    if restart == RestartRequest():
        herder.restart_connector(request.connector)
        return NO_CONTENT
    return Reply(status_json(herder.restart(request.connector, restart)), 202)


def _restart_task(herder: Herder, request: HttpRequest) -> Reply:
    herder.restart_task(request.task)
    return NO_CONTENT


def _pause(herder: Herder, request: HttpRequest) -> Reply:
    herder.pause(request.connector)
    return ACCEPTED


def _resume(herder: Herder, request: HttpRequest) -> Reply:
    herder.resume(request.connector)
    return ACCEPTED


def _stop(herder: Herder, request: HttpRequest) -> Reply:
    herder.stop_connector(request.connector)
    return NO_CONTENT


def _topics(herder: Herder, request: HttpRequest) -> Reply:
    return Reply({request.connector: {"topics": herder.topics(request.connector)}})


def _reset_topics(herder: Herder, request: HttpRequest) -> Reply:
    herder.reset_topics(request.connector)
    return ACCEPTED


def _offsets(herder: Herder, request: HttpRequest) -> Reply:
    found = herder.offsets(request.connector)
    return Reply(
        {"offsets": [{"partition": each.partition, "offset": each.offset} for each in found]}
    )


def _alter_offsets(herder: Herder, request: HttpRequest) -> Reply:
    return Reply({"message": herder.alter_offsets(request.connector, request.offsets())})


def _reset_offsets(herder: Herder, request: HttpRequest) -> Reply:
    return Reply({"message": herder.reset_offsets(request.connector)})


ENDPOINTS: Endpoints = {
    "/connectors": {"GET": _list, "POST": _create},
    "/connectors/{connector}": {"GET": _info, "DELETE": _delete},
    "/connectors/{connector}/config": {
        "GET": _config,
        "PUT": _put_config,
        "PATCH": _patch_config,
    },
    "/connectors/{connector}/status": {"GET": _status},
    "/connectors/{connector}/restart": {"POST": _restart},
    "/connectors/{connector}/pause": {"PUT": _pause},
    "/connectors/{connector}/resume": {"PUT": _resume},
    "/connectors/{connector}/stop": {"PUT": _stop},
    "/connectors/{connector}/tasks": {"GET": _tasks},
    "/connectors/{connector}/tasks/{task}/status": {"GET": _task_status},
    "/connectors/{connector}/tasks/{task}/restart": {"POST": _restart_task},
    "/connectors/{connector}/topics": {"GET": _topics},
    "/connectors/{connector}/topics/reset": {"PUT": _reset_topics},
    "/connectors/{connector}/offsets": {
        "GET": _offsets,
        "PATCH": _alter_offsets,
        "DELETE": _reset_offsets,
    },
}
