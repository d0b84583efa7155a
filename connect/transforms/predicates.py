"""Predicates: they decide to which records a transform applies."""

from collections.abc import Mapping

from broker.java.patterns import compile_pattern
from connect.api import Predicate
from connect.config_def import AllOf, ConfigDef, ConfigType, Importance, NonEmptyString, Regex
from connect.records import Record


class TopicNameMatches(Predicate):
    """Records of topics whose whole name matches a Java regular expression."""

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef().define(
            "pattern",
            ConfigType.STRING,
            validator=AllOf(NonEmptyString(), Regex()),
            importance=Importance.MEDIUM,
            doc="A Java regular expression for the whole topic name.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        self._pattern = compile_pattern(self.config().parse(config).text("pattern"))

    def test(self, record: Record) -> bool:
        return self._pattern.fullmatch(record.topic) is not None


class HasHeaderKey(Predicate):
    """Records with a header of this name."""

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef().define(
            "name",
            ConfigType.STRING,
            validator=NonEmptyString(),
            importance=Importance.MEDIUM,
            doc="The name of the header.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        self._name = self.config().parse(config).text("name")

    def test(self, record: Record) -> bool:
        return any(header.key == self._name for header in record.headers)


class RecordIsTombstone(Predicate):
    """Records without a value."""

    def test(self, record: Record) -> bool:
        return record.value is None
