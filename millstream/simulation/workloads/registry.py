"""RegistryWorkload: registers schemas and sets levels; stores what was acknowledged."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from broker.errors import RegistryError
from broker.registry.registry import Registry
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import Schema
from millstream.simulation.observations import Violation

SUBJECTS = "abc"
FIELDS_MAX = 25
STORE_ERRORS = 50_000  # from this code on it is unknown whether the change was written
INVARIANT = "schemas keep their ids"


def schema(fields: int) -> Schema:
    """A record with this many optional fields, compatible with all others."""
    columns = [{"name": f"f{n}", "type": ["null", "int"], "default": None} for n in range(fields)]
    return Schema(json.dumps({"type": "record", "name": "R", "fields": columns}))


@dataclass(slots=True)
class RegistryWorkload:
    """The acknowledged changes; they survive the killed process."""

    random: Random
    done: int = 0
    ids: dict[tuple[str, int], int] = field(default_factory=dict)  # of subject and field count
    levels: dict[str, CompatibilityLevel] = field(default_factory=dict)

    def change(self, registry: Registry, note: Callable[..., None]) -> None:
        """Make one change; raises RegistryError if the registry could not write it."""
        subject = self.random.choice(SUBJECTS)
        if self.random.random() < 0.8:
            self._register(registry, subject, self.random.randint(1, FIELDS_MAX), note)
        else:
            level = self.random.choice(list(CompatibilityLevel))
            self.levels.pop(subject, None)  # unknown, if the registry is killed now
            registry.set_level(subject, level)
            self.levels[subject] = level
            note("sets", subject, level.name)
        self.done += 1

    def _register(
        self, registry: Registry, subject: str, fields: int, note: Callable[..., None]
    ) -> None:
        try:
            schema_id = registry.register(subject, schema(fields))
        except RegistryError as error:
            if error.code >= STORE_ERRORS:
                raise
            note("refuses", subject, fields, error.code)
            if self.levels.get(subject) is CompatibilityLevel.NONE:
                raise Violation(
                    "levels are kept",
                    f"{subject} accepts everything, and refused {fields}: {error}",
                ) from error
            return
        known = self.ids.setdefault((subject, fields), schema_id)
        if known != schema_id:
            raise Violation(
                INVARIANT, f"{subject} with {fields} fields had id {known}, and has {schema_id}"
            )
        for (other, count), other_id in self.ids.items():
            if other_id == schema_id and count != fields:
                raise Violation(
                    INVARIANT,
                    f"{subject} with {fields} fields got id {schema_id} of {other}, {count}",
                )
        note("registers", subject, fields, schema_id)

    def check(self, registry: Registry) -> None:
        """Check that acknowledged schemas and levels exist."""
        for (subject, fields), known in self.ids.items():
            try:
                schema_id = registry.lookup(subject, schema(fields)).schema_id
                by_id = json.loads(registry.schema(known).text)
            except RegistryError as error:
                raise Violation(
                    INVARIANT, f"{subject} with {fields} fields had id {known}: {error}"
                ) from error
            if schema_id != known or len(by_id["fields"]) != fields:
                raise Violation(
                    INVARIANT,
                    f"{subject} with {fields} fields had id {known}, and has {schema_id}; "
                    f"the id is of {len(by_id['fields'])} fields",
                )
        for subject, level in self.levels.items():
            if registry.level(subject) is not level:
                raise Violation(
                    "levels are kept",
                    f"{subject} was set to {level.name}, and is {registry.level(subject)}",
                )
