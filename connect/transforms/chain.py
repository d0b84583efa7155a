"""TransformationChain: the transforms of a connector, each with its predicate, in their order."""

from collections.abc import Mapping
from dataclasses import dataclass

from connect.api import Predicate, Transformation
from connect.config_def import ConfigType, parse_type
from connect.connector_config import ensure_plugin
from connect.errors import ConfigError
from connect.plugin_finder import PluginFinder, PluginKind
from connect.records import Record


@dataclass(frozen=True, slots=True)
class Stage:
    """One transform, and which records it is for."""

    alias: str
    transformation: Transformation
    predicate: Predicate | None = None
    negate: bool = False

    def apply(self, record: Record) -> Record | None:
        """The record that goes on: transformed, or as it was if it is not for this transform."""
        if self.predicate is not None and self.predicate.test(record) is self.negate:
            return record
        return self.transformation.apply(record)

    def close(self) -> None:
        """Lets go of what the transform and the predicate hold."""
        self.transformation.close()
        if self.predicate is not None:
            self.predicate.close()


class TransformationChain:
    """What every record of a connector goes through."""

    def __init__(self, stages: tuple[Stage, ...] = ()) -> None:
        self.stages = stages

    @classmethod
    def build(cls, config: Mapping[str, str], plugins: PluginFinder) -> "TransformationChain":
        """The transforms that a connector's configuration names; ConfigError if one is wrong."""
        stages: list[Stage] = []
        try:
            for alias in _aliases("transforms", config):
                stages.append(_stage(alias, config, plugins))
        except BaseException:
            cls(tuple(stages)).close()
            raise
        return cls(tuple(stages))

    def apply(self, record: Record) -> Record | None:
        """The record that goes on; None if one of the transforms drops it."""
        for stage in self.stages:
            changed = stage.apply(record)
            if changed is None:
                return None
            record = changed
        return record

    def close(self) -> None:
        """Lets go of what the transforms and predicates hold."""
        for stage in self.stages:
            stage.close()


def _aliases(setting: str, config: Mapping[str, str]) -> list[str]:
    listed = parse_type(setting, config.get(setting), ConfigType.LIST)
    return listed if isinstance(listed, list) else []


def _stage(alias: str, config: Mapping[str, str], plugins: PluginFinder) -> Stage:
    prefix = f"transforms.{alias}."
    own = _under(prefix, config)
    predicate_alias, negate = own.pop("predicate", None), own.pop("negate", "false")
    made = _plugin(PluginKind.TRANSFORMATION, prefix, own, plugins)
    assert isinstance(made, Transformation), "found as one"
    made.configure(own)
    if predicate_alias is None:
        return Stage(alias, made)
    predicate = _predicate(predicate_alias.strip(), config, plugins)
    return Stage(alias, made, predicate, negate.strip().lower() == "true")


def _predicate(alias: str, config: Mapping[str, str], plugins: PluginFinder) -> Predicate:
    prefix = f"predicates.{alias}."
    known = _aliases("predicates", config)
    if alias not in known:
        raise ConfigError(
            f"Unknown configuration '{prefix}type'",
            hint=f'add "{alias}" to "predicates", which names {", ".join(known) or "none"}',
        )
    own = _under(prefix, config)
    made = _plugin(PluginKind.PREDICATE, prefix, own, plugins)
    assert isinstance(made, Predicate), "found as one"
    made.configure(own)
    return made


def _plugin(kind: PluginKind, prefix: str, own: Mapping[str, str], plugins: PluginFinder) -> object:
    chosen = own.get("type")
    if chosen is None:
        raise ConfigError(
            f'Missing required configuration "{prefix}type" which has no default value.'
        )
    full_name = plugins.class_name(chosen.strip())
    if full_name is None:
        raise ConfigError(
            f"Invalid value {chosen} for configuration {prefix}type: "
            f"Class {chosen} could not be found."
        )
    return ensure_plugin(plugins, kind, full_name)()


def _under(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in config.items()
        if name.startswith(prefix)
    }
