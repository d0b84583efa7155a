"""The cases in `cases/transforms/`: a transform, its settings, a record, and what Kafka answers.

Results and errors were written down by Kafka's own transforms: `REWRITE=1` lets them do it again
where they differ. An error may end with a star, which stands for what Java says in its own way, and
"here" is what our transform does instead, on purpose, where Kafka's fails.
"""

from dataclasses import dataclass
from pathlib import Path

import orjson

from connect.api import Predicate, Transformation
from connect.errors import ConfigError, ConnectError, DataError
from connect.plugin_finder import PluginKind
from connect.plugins import Plugins
from tests.connect.transforms.notation import Json, read_record, written_record

PLUGINS = Plugins(entries=())
FOLDER = Path(__file__).parent.parent / "cases" / "transforms"
# Errors that have a counterpart here; others come out of Java itself.
ERRORS: dict[str, type[ConnectError]] = {
    "ConfigException": ConfigError,
    "DataException": DataError,
    "ConnectException": ConnectError,
    "SchemaBuilderException": DataError,
}


@dataclass(frozen=True)
class Case:
    """One case, as its file has it."""

    family: str
    content: Json

    def __str__(self) -> str:
        """How pytest names it."""
        return f"{self.family}: {self.content['name']}"

    @property
    def expected(self) -> Json:
        """What Kafka answers: a record, null, a boolean, or {"error": ...}."""
        if "error" in self.content:
            return {"error": self.content["error"]}
        return self.content.get("result")

    @property
    def expected_here(self) -> Json:
        """What we answer."""
        return self.content.get("here", self.expected)


def read_cases() -> list[Case]:
    """All cases."""
    return [
        Case(path.stem, content)
        for path in sorted(FOLDER.glob("*.json"))
        for content in orjson.loads(path.read_bytes())
    ]


def answer(case: Case) -> Json:
    """What our transform or predicate answers."""
    content = case.content
    record = read_record(content["record"])
    try:
        if "predicate" in content:
            predicate = plugin(content["predicate"])
            assert isinstance(predicate, Predicate)
            predicate.configure(content["config"])
            return predicate.test(record)
        transformation = plugin(content["transform"])
        assert isinstance(transformation, Transformation)
        transformation.configure(content["config"])
        return written_record(transformation.apply(record))
    except ConnectError as error:
        return {"error": f"{_java_name(error)}: {error.message}"}


def plugin(name: str) -> object:
    """A transform or predicate by Kafka's name."""
    kinds = (PluginKind.TRANSFORMATION, PluginKind.PREDICATE)
    found = next(filter(None, (PLUGINS.find(kind, name) for kind in kinds)))
    return found()


def _java_name(error: ConnectError) -> str:
    return next(name for name, kind in ERRORS.items() if kind is type(error))


def agrees(found: Json, expected: Json) -> bool:
    """Whether an answer is Kafka's; errors of Java itself are errors here too, in other words."""
    if not isinstance(expected, dict) or "error" not in expected:
        return bool(found == expected)
    if not isinstance(found, dict) or "error" not in found:
        return False
    kind, _, message = expected["error"].partition(": ")
    if kind not in ERRORS:
        return True
    found_kind, _, found_message = found["error"].partition(": ")
    if message.endswith("*"):
        return ERRORS[found_kind] is ERRORS[kind] and found_message.startswith(message[:-1])
    return (ERRORS[found_kind], found_message) == (ERRORS[kind], message)


def write_cases(family: str, contents: list[Json]) -> None:
    """Rewrites a file, with a line for each part of a case."""
    blocks = []
    for content in contents:
        lines = [f"    {_text(name)}: {_text(part)}" for name, part in content.items()]
        blocks.append("  {\n" + ",\n".join(lines) + "\n  }")
    (FOLDER / f"{family}.json").write_text("[\n" + ",\n".join(blocks) + "\n]\n")


def _text(part: Json) -> str:
    return orjson.dumps(part).decode()
