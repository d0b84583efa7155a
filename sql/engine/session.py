"""SqlSession: the settings and variables that a user has set, in addition to the server's."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sql.engine.settings import SqlConfig, converted, plain_name, refuse_without_effect
from sql.errors import StatementFailed
from sql.syntax.node import Position
from sql.syntax.statements import (
    DefineVariable,
    SetProperty,
    UndefineVariable,
    UnsetProperty,
)
from sql.variables import substitute

SUBSTITUTION = "ksql.variable.substitution.enable"
SESSION_STATEMENTS = (SetProperty, UnsetProperty, DefineVariable, UndefineVariable)


@dataclass(slots=True)
class SqlSession:
    """Properties of SET and variables of DEFINE; names of variables are in upper case."""

    properties: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(
        config: SqlConfig,
        properties: Mapping[str, object] | None = None,
        variables: Mapping[str, object] | None = None,
    ) -> "SqlSession":
        """A session with the settings and variables of a request; settings are validated."""
        made = SqlSession()
        for name, value in (properties or {}).items():
            made.set_property(config, name, value)
        for name, value in (variables or {}).items():
            made.variables[name.upper()] = str(value)
        return made

    def copy(self) -> "SqlSession":
        """A copy, for preparing statements."""
        return SqlSession(dict(self.properties), dict(self.variables))

    def set_property(self, config: SqlConfig, name: str, value: object) -> None:
        """SET; refused if the setting is unknown or must not be set in a session."""
        found = converted(name, value)
        config.check_override(name)
        self.properties[name] = found

    def change(
        self,
        config: SqlConfig,
        statement: SetProperty | UnsetProperty | DefineVariable | UndefineVariable,
    ) -> None:
        """Execute SET, UNSET, DEFINE or UNDEFINE."""
        match statement:
            case SetProperty(name=name, value=value):
                config.check_override(name)
                refuse_without_effect(name, value)
                self.set_property(config, name, value)
            case UnsetProperty(name=name):
                plain_name(name)  # refuses unknown settings
                self.properties.pop(name, None)
            case DefineVariable(name=name, value=value):
                self.variables[name.upper()] = value
            case UndefineVariable(name=name):
                if self.variables.pop(name.upper(), None) is None:
                    raise StatementFailed(
                        f"Cannot undefine variable '{name}' which was never defined"
                    )

    def substituted(self, config: SqlConfig, text: str, start: Position | None = None) -> str:
        """A statement with the values of the session's variables; `start` is its position."""
        if not config.with_session(self.properties).flag(SUBSTITUTION):
            return text
        return substitute(text, self.variables, start=start)
