"""/config and /mode, globally or for one subject; /contexts."""

from broker.errors import RegistryError
from broker.registry.registry import Registry
from broker.registry.rest.registry_request import JSON_BODY, RegistryRequest, RegistryRoute, always
from broker.registry.rest.replies import configured
from broker.registry.subject_names import ALL_CONTEXTS
from broker.registry.values import Mode, SubjectConfig
from broker.rest import Json
from broker.serde.schema.compatibility.levels import CompatibilityLevel

INVALID_LEVEL = 42203
INVALID_MODE = 42204
# The error for a subject without its own mode.
NO_MODE = (40401, 40409)
LEVEL_KEY = "compatibility"


def _subject(request: RegistryRequest) -> str | None:
    return request.subject if "subject" in request.path else None


# --- /config ------------------------------------------------------------------------------------


def _config(registry: Registry, request: RegistryRequest) -> Json:
    default = request.flag("defaultToGlobal")
    return configured(registry.config(_subject(request), default_to_global=default))


def _set_config(registry: Registry, request: RegistryRequest) -> Json:
    content = request.content()
    fields = {
        name: value for name, value in content.items() if name != LEVEL_KEY and value is not None
    }
    level = _level(content.get(LEVEL_KEY))
    if level is None and not fields:
        raise _invalid_level()
    registry.set_config(_subject(request), SubjectConfig(level, fields))
    return {name: value for name, value in content.items() if value is not None}


def _level(value: object) -> CompatibilityLevel | None:
    if value is None:
        return None
    if not isinstance(value, str) or value.upper() not in CompatibilityLevel.__members__:
        raise _invalid_level()
    return CompatibilityLevel(value.upper())


def _invalid_level() -> RegistryError:
    return RegistryError(
        INVALID_LEVEL,
        "Invalid compatibility level. Valid values are none, backward, forward, full,"
        " backward_transitive, forward_transitive, and full_transitive",
    )


def _delete_config(registry: Registry, request: RegistryRequest) -> Json:
    return configured(registry.delete_config(_subject(request)))


# --- /mode --------------------------------------------------------------------------------------


def _mode(registry: Registry, request: RegistryRequest) -> Json:
    default = request.flag("defaultToGlobal")
    return {"mode": registry.mode(_subject(request), default_to_global=default).value}


def _set_mode(registry: Registry, request: RegistryRequest) -> Json:
    value = request.content().get("mode")
    if not isinstance(value, str) or value.upper() not in Mode.__members__:
        raise RegistryError(
            INVALID_MODE,
            "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and"
            " FORWARD.",
        )
    registry.set_mode(_subject(request), Mode(value.upper()), force=request.flag("force"))
    return {"mode": value}


def _delete_mode(registry: Registry, request: RegistryRequest) -> Json:
    subject = _subject(request)
    mode = registry.delete_mode(subject)
    if request.flag("recursive"):
        _delete_modes_below(registry, subject)
    return {"mode": mode.value}


def _delete_modes_below(registry: Registry, subject: str | None) -> None:
    """Delete the modes of all subjects of a context, or of all contexts."""
    for name in registry.subjects(prefix=subject or ALL_CONTEXTS, deleted=True):
        try:
            registry.delete_mode(name)
        except RegistryError as error:
            if error.code not in NO_MODE:
                raise


# --- /contexts ----------------------------------------------------------------------------------


def _contexts(registry: Registry, request: RegistryRequest) -> Json:
    found = registry.contexts()[request.offset :]
    return found if request.limit < 0 else found[: request.limit]


ROUTES: tuple[RegistryRoute, ...] = (
    RegistryRoute("GET", "/config", _config, at_once=always),
    RegistryRoute("PUT", "/config", _set_config, body=JSON_BODY),
    RegistryRoute("DELETE", "/config", _delete_config),
    RegistryRoute("GET", "/config/{subject}", _config, at_once=always),
    RegistryRoute("PUT", "/config/{subject}", _set_config, body=JSON_BODY),
    RegistryRoute("DELETE", "/config/{subject}", _delete_config),
    RegistryRoute("GET", "/mode", _mode, at_once=always),
    RegistryRoute("PUT", "/mode", _set_mode, body=JSON_BODY),
    RegistryRoute("DELETE", "/mode", _delete_mode),
    RegistryRoute("GET", "/mode/{subject}", _mode, at_once=always),
    RegistryRoute("PUT", "/mode/{subject}", _set_mode, body=JSON_BODY),
    RegistryRoute("DELETE", "/mode/{subject}", _delete_mode),
    RegistryRoute("GET", "/contexts", _contexts, at_once=always),
)
