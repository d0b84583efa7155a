"""RegexRouter: renames topics."""

from collections.abc import Mapping

from broker.java.patterns import compile_pattern
from broker.java.replacements import replacement_filler
from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance, Regex
from connect.errors import DataError
from connect.records import Record


class RegexRouter(Transformation):
    """Renames topics by a Java regular expression."""

    @classmethod
    def config(cls) -> ConfigDef:
        return (
            ConfigDef()
            .define(
                "regex",
                ConfigType.STRING,
                validator=Regex(),
                importance=Importance.HIGH,
                doc="The regular expression; topics whose whole name does not match keep their "
                "name.",
            )
            .define(
                "replacement",
                ConfigType.STRING,
                importance=Importance.HIGH,
                doc="The new name; $1 or ${name} is replaced with the match of a group.",
            )
        )

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._text = settings.text("regex")
        self._pattern = compile_pattern(self._text)
        self._replacement = settings.text("replacement")

    def apply(self, record: Record) -> Record:
        topic = record.topic
        if self._pattern.fullmatch(topic) is None:
            return record
        # Java replaces the first match, which may be shorter than the whole name.
        found = self._pattern.search(topic)
        assert found is not None, "the whole name matches"
        try:
            filled = replacement_filler(self._text, self._replacement)(found)
        except ValueError as error:
            hint = 'correct "replacement": $ refers to groups, \\$ is a literal $'
            raise DataError(str(error), hint=hint) from None
        return record.changed(topic=topic[: found.start()] + filled + topic[found.end() :])
