"""/connector-plugins and /admin/loggers: the plugins, and the log levels."""

from broker.rest import Json, Reply
from connect.config.answers import key_info
from connect.herder import Herder
from connect.rest.connect_request import JSON_BODY, ConnectRequest, ConnectRoute
from connect.rest.replies import NO_CONTENT, logger_json

ANY_VERSION = "latest"


def _list(herder: Herder, request: ConnectRequest) -> Reply:
    found = herder.catalog.listing(connectors_only=request.flag("connectorsOnly", default=True))
    plugins: list[Json] = []
    for each in found:
        version = {} if each.version is None else {"version": each.version}
        plugins.append({"class": each.class_name, "type": each.type, **version})
    return Reply(plugins)


def _config(herder: Herder, request: ConnectRequest) -> Reply:
    keys = herder.catalog.settings(request.name)
    wanted = request.query.get("version", [ANY_VERSION])[0]
    if wanted != ANY_VERSION:
        herder.catalog.check_version(request.name, wanted)
    return Reply([key_info(key) for key in keys])


def _validate(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply(herder.catalog.validate_for(request.name, request.config()).as_json())


def _loggers(herder: Herder, request: ConnectRequest) -> Reply:
    del request
    return Reply({name: logger_json(each) for name, each in herder.loggers.levels().items()})


def _logger(herder: Herder, request: ConnectRequest) -> Reply:
    return Reply(logger_json(herder.loggers.level(request.name)))


def _set_logger(herder: Herder, request: ConnectRequest) -> Reply:
    level = request.config().get("level")
    scope = request.query.get("scope", ["worker"])[0]
    if scope.lower() == "cluster":
        herder.set_logger_level_everywhere(request.name, level)
        return NO_CONTENT
    return Reply(herder.loggers.set_level(request.name, level))


ROUTES: tuple[ConnectRoute, ...] = (
    ConnectRoute("GET", "/connector-plugins", _list),
    ConnectRoute("GET", "/connector-plugins/{name}/config", _config),
    ConnectRoute("PUT", "/connector-plugins/{name}/config/validate", _validate, body=JSON_BODY),
    ConnectRoute("GET", "/admin/loggers", _loggers),
    ConnectRoute("GET", "/admin/loggers/{name}", _logger),
    ConnectRoute("PUT", "/admin/loggers/{name}", _set_logger, body=JSON_BODY),
)
