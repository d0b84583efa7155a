"""TransformationChain: the transforms of a connector in order, each with its predicate."""

from collections.abc import Mapping
from dataclasses import dataclass

from connect.api import Predicate, Transformation
from connect.config.connector_config import class_finder, ensure_plugin, list_setting
from connect.config_def import invalid, with_prefix
from connect.errors import ConfigError
from connect.plugin_finder import PluginFinder, PluginKind
from connect.records import Record


@dataclass(frozen=True, slots=True)
class ChainedTransform:
    """One transform, with its alias, class name and predicate."""

    alias: str
    class_name: str
    transformation: Transformation
    predicate: Predicate | None = None
    negate: bool = False

    def apply(self, record: Record) -> Record | None:
        """The transformed record, or the unchanged one if the predicate does not match."""
        if self.predicate is not None and self.predicate.test(record) is self.negate:
            return record
        return self.transformation.apply(record)

    def close(self) -> None:
        self.transformation.close()
        if self.predicate is not None:
            self.predicate.close()


class TransformationChain:
    """The transforms that every record of a connector passes through."""

    def __init__(self, transforms: tuple[ChainedTransform, ...] = ()) -> None:
        self.transforms = transforms

    @classmethod
    def build(cls, config: Mapping[str, str], plugins: PluginFinder) -> "TransformationChain":
        """The transforms of a connector's configuration; ConfigError if one is invalid."""
        made: list[ChainedTransform] = []
        try:
            for alias in list_setting("transforms", config):
                made.append(_chained(alias, config, plugins))
        except BaseException:
            cls(tuple(made)).close()
            raise
        return cls(tuple(made))

    def apply(self, record: Record) -> Record | None:
        """The transformed record; None if a transform drops it."""
        for transform in self.transforms:
            changed = transform.apply(record)
            if changed is None:
                return None
            record = changed
        return record

    def close(self) -> None:
        for transform in self.transforms:
            transform.close()


def _chained(alias: str, config: Mapping[str, str], plugins: PluginFinder) -> ChainedTransform:
    prefix = f"transforms.{alias}."
    own = with_prefix(prefix, config)
    predicate_alias, negate = own.pop("predicate", None), own.pop("negate", "false")
    class_name = _class_name(prefix, own, plugins)
    made = ensure_plugin(plugins, PluginKind.TRANSFORMATION, class_name)()
    assert isinstance(made, Transformation), "found as one"
    made.configure(own)
    if predicate_alias is None:
        return ChainedTransform(alias, class_name, made)
    predicate = _predicate(predicate_alias.strip(), config, plugins)
    negated = negate.strip().lower() == "true"
    return ChainedTransform(alias, class_name, made, predicate, negated)


def _predicate(alias: str, config: Mapping[str, str], plugins: PluginFinder) -> Predicate:
    prefix = f"predicates.{alias}."
    known = list_setting("predicates", config)
    if alias not in known:
        raise ConfigError(
            f"Unknown configuration '{prefix}type'",
            hint=f'add "{alias}" to "predicates", which names {", ".join(known) or "none"}',
        )
    own = with_prefix(prefix, config)
    class_name = _class_name(prefix, own, plugins)
    made = ensure_plugin(plugins, PluginKind.PREDICATE, class_name)()
    assert isinstance(made, Predicate), "found as one"
    made.configure(own)
    return made


def _class_name(prefix: str, own: Mapping[str, str], plugins: PluginFinder) -> str:
    chosen = own.get("type")
    if chosen is None:
        raise ConfigError(
            f'Missing required configuration "{prefix}type" which has no default value.'
        )
    full_name = class_finder(plugins)(chosen.strip())
    if full_name is None:
        raise invalid(f"{prefix}type", chosen, f"Class {chosen} could not be found.")
    return full_name
