"""/config and /mode: what is allowed, everywhere or for one subject; /contexts."""

from broker.errors import RegistryError
from broker.registry.registry import Registry
from broker.registry.rest.answers import Json, configured
from broker.registry.rest.endpoint import Endpoint, Endpoints, short
from broker.registry.rest.requests import RestRequest
from broker.registry.subject_names import ALL_CONTEXTS
from broker.registry.values import Mode, SubjectConfig
from broker.serde.schema.compatibility.levels import CompatibilityLevel

INVALID_LEVEL = 42203
INVALID_MODE = 42204
# What a subject without a mode of its own is refused with.
NO_MODE = (40401, 40409)
LEVEL_KEY = "compatibility"


def _subject(asked: RestRequest) -> str | None:
    return asked.subject if "subject" in asked.path else None


# --- /config ------------------------------------------------------------------------------------


def _config(registry: Registry, asked: RestRequest) -> Json:
    default = asked.flag("defaultToGlobal")
    return configured(registry.config(_subject(asked), default_to_global=default))


def _set_config(registry: Registry, asked: RestRequest) -> Json:
    content = asked.content()
    fields = {
        name: value for name, value in content.items() if name != LEVEL_KEY and value is not None
    }
    level = _level(content.get(LEVEL_KEY))
    if level is None and not fields:
        raise _invalid_level()
    registry.set_config(_subject(asked), SubjectConfig(level, fields))
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


def _delete_config(registry: Registry, asked: RestRequest) -> Json:
    return configured(registry.delete_config(_subject(asked)))


# --- /mode --------------------------------------------------------------------------------------


def _mode(registry: Registry, asked: RestRequest) -> Json:
    default = asked.flag("defaultToGlobal")
    return {"mode": registry.mode(_subject(asked), default_to_global=default).value}


def _set_mode(registry: Registry, asked: RestRequest) -> Json:
    value = asked.content().get("mode")
    if not isinstance(value, str) or value.upper() not in Mode.__members__:
        raise RegistryError(
            INVALID_MODE,
            "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and"
            " FORWARD.",
        )
    registry.set_mode(_subject(asked), Mode(value.upper()), force=asked.flag("force"))
    return {"mode": value}


def _delete_mode(registry: Registry, asked: RestRequest) -> Json:
    subject = _subject(asked)
    mode = registry.delete_mode(subject)
    if asked.flag("recursive"):
        _delete_modes_below(registry, subject)
    return {"mode": mode.value}


def _delete_modes_below(registry: Registry, subject: str | None) -> None:
    """The modes of all subjects of a context, or of all there are."""
    for name in registry.subjects(prefix=subject or ALL_CONTEXTS, deleted=True):
        try:
            registry.delete_mode(name)
        except RegistryError as error:
            if error.code not in NO_MODE:
                raise


# --- /contexts ----------------------------------------------------------------------------------


def _contexts(registry: Registry, asked: RestRequest) -> Json:
    found = registry.contexts()[asked.offset :]
    return found if asked.limit < 0 else found[: asked.limit]


CONFIG = {
    "GET": short(_config),
    "PUT": Endpoint(_set_config),
    "DELETE": Endpoint(_delete_config),
}
MODE = {"GET": short(_mode), "PUT": Endpoint(_set_mode), "DELETE": Endpoint(_delete_mode)}
ENDPOINTS: Endpoints = {
    "/config": CONFIG,
    "/config/{subject}": CONFIG,
    "/mode": MODE,
    "/mode/{subject}": MODE,
    "/contexts": {"GET": short(_contexts)},
}
