"""/connector-plugins and /admin/loggers: the plugins, and the log levels."""

from connect.config.answers import key_info
from connect.herder import Herder
from connect.rest.answers import NO_CONTENT, Json, Reply, logger_json
from connect.rest.endpoint import Endpoints
from connect.rest.http_request import HttpRequest

ANY_VERSION = "latest"


def _list(herder: Herder, request: HttpRequest) -> Reply:
    found = herder.catalog.listing(connectors_only=request.flag("connectorsOnly", default=True))
    plugins: list[Json] = []
    for each in found:
        version = {} if each.version is None else {"version": each.version}
        plugins.append({"class": each.class_name, "type": each.type, **version})
    return Reply(plugins)


def _config(herder: Herder, request: HttpRequest) -> Reply:
    keys = herder.catalog.settings(request.name)
    wanted = request.query.get("version", [ANY_VERSION])[0]
    if wanted != ANY_VERSION:
        herder.catalog.check_version(request.name, wanted)
    return Reply([key_info(key) for key in keys])


def _validate(herder: Herder, request: HttpRequest) -> Reply:
    return Reply(herder.catalog.validate_for(request.name, request.config()).as_json())


def _loggers(herder: Herder, request: HttpRequest) -> Reply:
    del request
    return Reply({name: logger_json(each) for name, each in herder.loggers.levels().items()})


def _logger(herder: Herder, request: HttpRequest) -> Reply:
    return Reply(logger_json(herder.loggers.level(request.name)))


def _set_logger(herder: Herder, request: HttpRequest) -> Reply:
    level = request.config().get("level")
    scope = request.query.get("scope", ["worker"])[0]
    if scope.lower() == "cluster":
        herder.set_logger_level_everywhere(request.name, level)
        return NO_CONTENT
    return Reply(herder.loggers.set_level(request.name, level))


ENDPOINTS: Endpoints = {
    "/connector-plugins": {"GET": _list},
    "/connector-plugins/{name}/config": {"GET": _config},
    "/connector-plugins/{name}/config/validate": {"PUT": _validate},
    "/admin/loggers": {"GET": _loggers},
    "/admin/loggers/{name}": {"GET": _logger, "PUT": _set_logger},
}
