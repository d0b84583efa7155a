"""The settings of converters with schemas in a registry, and their registry."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit
from weakref import WeakValueDictionary, finalize

from broker import concurrency
from broker.serde.registry import CachedRegistry, HttpSchemaRegistry, SchemaRegistry
from broker.serde.subjects import SubjectStrategy, record_name, topic_name, topic_record_name
from connect.config_def import REQUIRED, ConfigDef, ConfigType, Importance, Password, Range
from connect.converters.settings import converter_settings, parse_settings
from connect.errors import ConfigError

_STRATEGIES: dict[str, SubjectStrategy] = {
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}
_TOPIC_NAME = "io.confluent.kafka.serializers.subject.TopicNameStrategy"


def registry_definition(
    flags: Iterable[tuple[str, bool, str]], importance: Importance = Importance.MEDIUM
) -> ConfigDef:
    """The settings that all these converters have, and the flags of one: name, default, doc."""
    definition = converter_settings()
    definition.define(
        "schema.registry.url",
        ConfigType.LIST,
        REQUIRED,
        importance=Importance.HIGH,
        doc="The addresses of the schema registry, separated by commas.",
    )
    for name, on, doc in (
        ("auto.register.schemas", True, "Whether new schemas are registered automatically."),
        ("use.latest.version", False, "Whether the latest registered schema is used for writing."),
        ("normalize.schemas", False, "Whether schemas are normalized before they are compared."),
    ):
        definition.define(name, ConfigType.BOOLEAN, on, importance=Importance.MEDIUM, doc=doc)
    for name in ("key.subject.name.strategy", "value.subject.name.strategy"):
        definition.define(
            name,
            ConfigType.STRING,
            _TOPIC_NAME,
            importance=Importance.MEDIUM,
            doc="The strategy for subject names: TopicNameStrategy, RecordNameStrategy or "
            "TopicRecordNameStrategy.",
        )
    for name, type_, default, doc in (
        (
            "basic.auth.credentials.source",
            ConfigType.STRING,
            "URL",
            "The source of the credentials: URL or USER_INFO.",
        ),
        (
            "basic.auth.user.info",
            ConfigType.PASSWORD,
            "",
            "User name and password, separated by a colon.",
        ),
        ("bearer.auth.token", ConfigType.PASSWORD, "", "The token for bearer authentication."),
        (
            "schema.registry.ssl.ca.location",
            ConfigType.STRING,
            "",
            "A PEM file with trusted certificates.",
        ),
    ):
        definition.define(name, type_, default, importance=Importance.MEDIUM, doc=doc)
    for name, on, doc in flags:
        definition.define(name, ConfigType.BOOLEAN, on, importance=importance, doc=doc)
    return definition.define(
        "schemas.cache.config",
        ConfigType.INT,
        1_000,
        validator=Range(1),
        importance=Importance.LOW,
        doc="The maximum number of cached schemas.",
    )


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """The values of the settings."""

    values: Mapping[str, object]
    is_key: bool
    subject: SubjectStrategy

    def is_on(self, name: str) -> bool:
        """Whether a boolean setting is true."""
        return self.values[name] is True

    def number(self, name: str) -> int:
        """The value of an integer setting."""
        value = self.values[name]
        assert isinstance(value, int), "its definition requires it"
        return value


def parse_registry_settings(
    definition: ConfigDef, config: Mapping[str, object], is_key: bool
) -> RegistrySettings:
    """The settings of a converter of keys or values."""
    # Confluent's older name for the same setting.
    old = config.get("schema.registry.basic.auth.user.info")
    config = {**config, "basic.auth.user.info": old} if old else config
    values = parse_settings(definition, config, is_key)
    name = f"{'key' if is_key else 'value'}.subject.name.strategy"
    strategy = _STRATEGIES.get(str(values[name]).rpartition(".")[2])
    if strategy is None:
        raise ConfigError(
            f"Invalid value {values[name]} for configuration {name}: it must be one of "
            f"{', '.join(_STRATEGIES)}"
        )
    return RegistrySettings(values, is_key, strategy)


_open: WeakValueDictionary[object, CachedRegistry] = WeakValueDictionary()
_opening = concurrency.Lock()


def open_registry(settings: RegistrySettings, given: SchemaRegistry | None) -> CachedRegistry:
    """The registry of the settings; converters with equal settings share its cache."""
    if given is not None:
        return CachedRegistry.of(given)
    values = settings.values
    urls = values["schema.registry.url"]
    assert isinstance(urls, list), "its definition requires it"
    if not urls:
        raise ConfigError(
            'Missing required configuration "schema.registry.url" which has no default value.'
        )
    auth = _authentication(settings, str(urls[0]))
    trusted = str(values["schema.registry.ssl.ca.location"]) or None
    key = (tuple(urls), auth, trusted)
    with _opening:
        result = _open.get(key)
        if result is None:
            addresses = [_without_user(str(url)) for url in urls]
            http = HttpSchemaRegistry(addresses, auth=auth, certificates=trusted)
            result = _open[key] = CachedRegistry(http)
            finalize(result, http.close)  # when the last converter is garbage collected
    return result


def _authentication(settings: RegistrySettings, url: str) -> tuple[str, str] | str | None:
    token = settings.values["bearer.auth.token"]
    if isinstance(token, Password) and token.value:
        return token.value
    if settings.values["basic.auth.credentials.source"] == "USER_INFO":
        given = settings.values["basic.auth.user.info"]
        user, colon, password = (given.value if isinstance(given, Password) else "").partition(":")
        if not colon:
            raise ConfigError(
                "Invalid value [hidden] for configuration basic.auth.user.info: it must "
                "have the form user:password"
            )
        return user, password
    parts = urlsplit(url)
    return (parts.username, parts.password or "") if parts.username else None


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
