"""Validates a connector's configuration: every setting, its value and its errors.

the settings of every source or sink, with those of its transforms and predicates
the connector's own settings, and errors that only it can detect
client overrides, if the worker's policy allows them
the settings of its own converters
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from connect.api import Connector, ExactlyOnceSupport, SourceConnector
from connect.config.answers import ConfigInfos, config_infos, merged_infos, prefixed_infos
from connect.config.connector_config import (
    WorkerConverters,
    check_sink,
    sink_definition,
    source_definition,
)
from connect.config.enrichment import enrich
from connect.config.hidden_settings import HiddenSettings
from connect.config.hidden_values import hide_in_text, hide_value, is_secret_name
from connect.config.providers import ConfigProviders
from connect.config.worker_config import WorkerConfig
from connect.config_def import ConfigDef, ConfigValue, with_prefix
from connect.errors import BadRequest, ConfigError, ConnectError
from connect.plugin_finder import PluginKind
from connect.plugins import Plugins
from connect.state.group_offsets import group_of

NullableConfig = Mapping[str, str | None]

CLASS = "connector.class"
ENDPOINT = "/connector-plugins/{connectorType}/config/validate"
OVERRIDES = ("producer.override.", "consumer.override.", "admin.override.")
# The settings that the policy "Principal" allows: the identity of the connector.
PRINCIPAL = ("security.protocol", "sasl.jaas.config", "sasl.mechanism")
CONVERTERS = {
    "key.converter": PluginKind.CONVERTER,
    "value.converter": PluginKind.CONVERTER,
    "header.converter": PluginKind.HEADER_CONVERTER,
}


def connector_class(config: NullableConfig) -> str:
    """The connector class of a configuration; BadRequest if there is none."""
    name = config.get(CLASS)
    if name is None:
        raise BadRequest(f"Connector config {_java_map(config)} contains no connector type")
    return name.strip()


def check_valid(infos: ConfigInfos) -> None:
    """Raise BadRequest with all errors of a validation, if there are any."""
    if infos.error_count:
        listed = "".join(f"\n{error}" for error in infos.errors)
        raise BadRequest(
            "Connector configuration is invalid and contains the following "
            f"{infos.error_count} error(s):{listed}\n"
            f"You can also find the above list of errors at the endpoint `{ENDPOINT}`"
        )


def common_definition(
    plugins: Plugins, name: str, converters: WorkerConverters | None = None
) -> ConfigDef:
    """The settings that a connector shares with all others of its type."""
    is_source = plugins.kind_of(name) is PluginKind.SOURCE
    common = source_definition if is_source else sink_definition
    return common(plugins, name, converters)


@dataclass(frozen=True, slots=True)
class Validation:
    """Validates configurations for one worker."""

    plugins: Plugins
    worker: WorkerConfig
    providers: ConfigProviders

    def _definition(self, name: str, config: NullableConfig) -> ConfigDef:
        converters = WorkerConverters(
            self.worker.key_converter, self.worker.value_converter, self.worker.header_converter
        )
        return enrich(common_definition(self.plugins, name, converters), config, self.plugins)

    def validate(self, config: NullableConfig) -> ConfigInfos:
        """All settings of a configuration; BadRequest if its class is unknown."""
        name = connector_class(config)
        try:
            connector = self.plugins.connector(name)
        except ConfigError as error:
            raise BadRequest(error.message, at=error.at, hint=error.hint) from error
        given = {key: text for key, text in config.items() if text is not None}
        resolved: dict[str, str | None] = {**config, **self.providers.resolve(given)}
        common = self._definition(name, resolved)
        values = common.validate_all(resolved)
        self._check_common(connector, resolved, values)
        for key, text in config.items():
            if text is None:
                wrong = "Null value can not be supplied as the configuration value."
                values.setdefault(key, ConfigValue(key)).errors.append(wrong)
        own = connector.config()
        values.update(own.validate_all(resolved))
        refused = self.worker.allowed_paths.errors(connector, self.providers.resolve(given))
        if refused:
            _add_errors(refused, resolved, values)  # the connector must not open those files
        else:
            _add_own_errors(connector, self.providers.resolve(given), values)
        _hide_resolved(config, resolved, values)
        result = merged_infos(
            name,
            config_infos(
                name,
                {**common.keys, **own.keys},
                values.values(),
                [*common.groups, *(each for each in own.groups if each not in common.groups)],
            ),
            self._overrides(given),
            *(self._converter(setting, resolved) for setting in CONVERTERS),
        )
        secrets = HiddenSettings(self.plugins).secrets(self.providers.resolve(given))
        for each in result.configs:
            if each.value is not None:
                each.value.errors = [hide_in_text(error, secrets) for error in each.value.errors]
        return result

    def _check_common(
        self, connector: type[Connector], config: NullableConfig, values: dict[str, ConfigValue]
    ) -> None:
        if issubclass(connector, SourceConnector):
            self._check_exactly_once(connector, config, values)
            return
        check_sink(config, values)
        self._check_group(config, values)

    def _check_group(self, config: NullableConfig, values: dict[str, ConfigValue]) -> None:
        """Check that a sink does not use the worker's group."""
        name, override = config.get("name"), "consumer.override.group.id"
        group = group_of(str(name), config)
        if group != self.worker.group_id:
            return
        setting = override if override in config else "name"
        whose = f"{group}" if override in config else f"for sink connector named {name}"
        values.setdefault(setting, ConfigValue(setting, config.get(setting))).errors.append(
            f"Consumer group {whose} conflicts with Connect worker group {self.worker.group_id}"
        )

    def _check_exactly_once(
        self,
        connector: type[SourceConnector],
        config: NullableConfig,
        values: dict[str, ConfigValue],
    ) -> None:
        """Check whether the worker and the connector support exactly-once delivery."""
        given = {key: text for key, text in config.items() if text is not None}
        wanted, boundary = values["exactly.once.support"], values["transaction.boundary"]
        if str(wanted.value).lower() == "required":
            if not self.worker.exactly_once:
                wanted.errors.append(
                    "This worker does not have exactly-once source support enabled."
                )
            elif connector().exactly_once_support(given) is not ExactlyOnceSupport.SUPPORTED:
                wanted.errors.append(
                    "The connector does not support exactly-once delivery guarantees with the "
                    "provided configuration."
                )
        by_connector = str(boundary.value).lower() == "connector"
        if by_connector and not connector().can_define_transaction_boundaries(given):
            boundary.errors.append(
                "The connector does not support connector-defined transaction boundaries with the "
                "given configuration. Please reconfigure it to use a different transaction "
                "boundary definition."
            )

    def _overrides(self, config: Mapping[str, str]) -> ConfigInfos | None:
        """The client overrides, which have no definition, only values and errors of the policy."""
        policy = self.worker.connector_client_config_override_policy.rpartition(".")[2]
        allowed = _allowed_overrides(policy, self.worker.originals)
        values = [
            ConfigValue(key, text, errors=_policy_errors(key, policy, allowed))
            for key, text in config.items()
            if key.startswith(OVERRIDES)
        ]
        return prefixed_infos({}, values, "") if values else None

    def _converter(self, setting: str, config: NullableConfig) -> ConfigInfos | None:
        """The settings of a converter in the connector's configuration."""
        chosen = config.get(setting)
        if chosen is None:
            return None
        try:
            found = self.plugins.find(CONVERTERS[setting], chosen)
        except ConfigError:
            return None  # the setting itself has the error
        definition = getattr(found, "config", None)
        if definition is None:
            return None
        prefix = f"{setting}."
        kind = setting.partition(".")[0]
        declared: ConfigDef = definition()
        values = declared.validate({"converter.type": kind, **with_prefix(prefix, config)})
        return prefixed_infos(declared.keys, values, prefix)


def _add_own_errors(
    connector: type[Connector], config: Mapping[str, str], values: dict[str, ConfigValue]
) -> None:
    """Errors that only the connector can detect; an exception is an error of its class."""
    try:
        found = connector().validate(config) or {}
    except ConnectError as error:
        found = {CLASS: [str(error)]}
    _add_errors(found, config, values)


def _add_errors(
    found: Mapping[str, Iterable[str]], config: NullableConfig, values: dict[str, ConfigValue]
) -> None:
    for name, errors in found.items():
        values.setdefault(name, ConfigValue(name, config.get(name))).errors.extend(errors)


def _hide_resolved(
    written: NullableConfig, resolved: NullableConfig, values: Mapping[str, ConfigValue]
) -> None:
    """Show references in place of their values, which may be secret."""
    for key, text in written.items():
        secret, value = resolved[key], values.get(key)
        if text is not None and secret and secret != text and value is not None:
            value.value = text
            value.errors = [error.replace(secret, text) for error in value.errors]


def _allowed_overrides(policy: str, settings: Mapping[str, str]) -> Iterable[str] | None:
    """The client settings that may be overridden; None if all."""
    match policy.removesuffix("ConnectorClientConfigOverridePolicy"):
        case "All":
            return None
        case "None":
            return ()
        case "Principal":
            return PRINCIPAL
        case "Allowlist":
            listed = settings.get("connector.client.config.override.allowlist", "")
            return tuple(name.strip() for name in listed.split(","))
        case _:
            raise ConfigError(
                f'"connector.client.config.override.policy" is "{policy}"',
                hint="it must be All, None, Principal or Allowlist",
            )


def _policy_errors(key: str, policy: str, allowed: Iterable[str] | None) -> list[str]:
    setting = key.split(".override.", 1)[1]
    if allowed is None or setting in allowed:
        return []
    return [
        f"The '{policy}' policy does not allow '{setting}' to be overridden in the connector "
        "configuration."
    ]


def _java_map(config: NullableConfig) -> str:
    """A map as Java prints it, the name first."""
    shown = {
        key: "null" if text is None else hide_value(key, text, password=is_secret_name(key))
        for key, text in config.items()
    }
    if "name" in shown:
        shown = {"name": shown.pop("name"), **shown}
    return f"{{{', '.join(f'{key}={text}' for key, text in shown.items())}}}"
