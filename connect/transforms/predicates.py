"""The predicates: which records a transform is for."""

from collections.abc import Mapping

from broker.java.patterns import compile_pattern
from connect.api import Predicate
from connect.config_def import AllOf, ConfigDef, ConfigType, Importance, NonEmptyString, Regex
from connect.records import Record


class TopicNameMatches(Predicate):
    """Records of topics whose whole name matches a regular expression of Java."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The expression."""
        return ConfigDef().define(
            "pattern",
            ConfigType.STRING,
            validator=AllOf(NonEmptyString(), Regex()),
            importance=Importance.MEDIUM,
            doc="A Java regular expression for the whole topic name.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        """Takes the expression."""
        self._pattern = compile_pattern(self.config().parse(config).text("pattern"))

    def test(self, record: Record) -> bool:
        """Whether the topic matches."""
        return self._pattern.fullmatch(record.topic) is not None


class HasHeaderKey(Predicate):
    """Records that have a header of some name."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The name."""
        return ConfigDef().define(
            "name",
            ConfigType.STRING,
            validator=NonEmptyString(),
            importance=Importance.MEDIUM,
            doc="The name of the header.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        """Takes the name."""
        self._name = self.config().parse(config).text("name")

    def test(self, record: Record) -> bool:
        """Whether there is such a header."""
        return any(header.key == self._name for header in record.headers)


class RecordIsTombstone(Predicate):
    """Records without a value."""

    def test(self, record: Record) -> bool:
        """Whether the value is null."""
        return record.value is None
