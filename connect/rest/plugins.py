"""/connector-plugins and /admin/loggers: what can be made, and how much is told in the logs."""

from connect.config_answers import key_info
from connect.herder import Herder
from connect.rest.answers import NO_CONTENT, Json, Reply, logger_json
from connect.rest.asked import Asked
from connect.rest.endpoint import Endpoints

ANY_VERSION = "latest"


def _list(herder: Herder, asked: Asked) -> Reply:
    found = herder.catalog.listing(connectors_only=asked.flag("connectorsOnly", default=True))
    plugins: list[Json] = []
    for each in found:
        version = {} if each.version is None else {"version": each.version}
        plugins.append({"class": each.class_name, "type": each.type, **version})
    return Reply(plugins)


def _config(herder: Herder, asked: Asked) -> Reply:
    keys = herder.catalog.settings(asked.name)
    wanted = asked.query.get("version", [ANY_VERSION])[0]
    if wanted != ANY_VERSION:
        herder.catalog.check_version(asked.name, wanted)
    return Reply([key_info(key) for key in keys])


def _validate(herder: Herder, asked: Asked) -> Reply:
    return Reply(herder.catalog.validate_for(asked.name, asked.config()).as_json())


def _loggers(herder: Herder, asked: Asked) -> Reply:
    del asked
    return Reply({name: logger_json(each) for name, each in herder.loggers.levels().items()})


def _logger(herder: Herder, asked: Asked) -> Reply:
    return Reply(logger_json(herder.loggers.level(asked.name)))


def _set_logger(herder: Herder, asked: Asked) -> Reply:
    level = asked.config().get("level")
    scope = asked.query.get("scope", ["worker"])[0]
    if scope.lower() == "cluster":
        herder.set_logger_level_everywhere(asked.name, level)
        return NO_CONTENT
    return Reply(herder.loggers.set_level(asked.name, level))


ENDPOINTS: Endpoints = {
    "/connector-plugins": {"GET": _list},
    "/connector-plugins/{name}/config": {"GET": _config},
    "/connector-plugins/{name}/config/validate": {"PUT": _validate},
    "/admin/loggers": {"GET": _loggers},
    "/admin/loggers/{name}": {"GET": _logger, "PUT": _set_logger},
}
