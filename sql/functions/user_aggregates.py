"""User-defined aggregates: classes with initial, add and merge, optionally result and undo."""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from sql.datatypes import DataType, DecimalType
from sql.errors import StatementFailed
from sql.functions.matching import filled, match
from sql.functions.registry import Aggregator, Family, Settings
from sql.functions.signature_text import read_signature
from sql.functions.signatures import AnyDecimal, Parameter, Pattern, Signature
from sql.functions.type_hints import parameter_of, pattern_of

Made = Callable[..., Any]  # Any: users' classes have any types


class UserAggregator:
    """An instance of a user's class; its methods are called directly."""

    def __init__(self, working: Any, state_type: DataType, result_type: DataType) -> None:
        self.state_type = state_type
        self.result_type = result_type
        self.initial: Made = working.initial
        self.add: Made = working.add
        self.merge: Made = working.merge
        self.undo: Made | None = getattr(working, "undo", None)
        self.result: Made = getattr(working, "result", _same)


def _same(state: object) -> object:
    return state


def user_aggregate(
    family: Family,
    made: Any,
    declared: Signature | str,
    description: str,
    state: str,
    constants: int,
) -> None:
    """Add a class to a family, with a signature or with a name and hints; Any: the class."""
    missing = [each for each in ("initial", "add", "merge") if not callable(getattr(made, each, 0))]
    if missing:
        raise ValueError(f"it has no method {' and no '.join(missing)}")
    literals = inspect.signature(made).parameters
    with_settings = "settings" in literals
    if isinstance(declared, Signature):
        if not state:
            raise ValueError("a signature needs the type of the state, too: state=")
        signature, state_pattern = declared, read_signature(f"F() -> {state}").result
    else:
        signature, state_pattern, constants = _hinted(made, declared)

    def make(
        types: tuple[DataType, ...], given: tuple[object, ...], settings: Settings
    ) -> Aggregator:
        working = made(*given, settings=settings) if with_settings else made(*given)
        return UserAggregator(
            working,
            _known(signature, state_pattern, types),
            _known(signature, signature.result, types),
        )

    undoable = callable(getattr(made, "undo", None))
    family.aggregate(signature, description, constants=constants, undoable=undoable)(make)


def _known(signature: Signature, pattern: Pattern, types: tuple[DataType, ...]) -> DataType:
    matched = match(signature, types, convert=True)
    result = filled(pattern, matched.bindings) if matched else None
    if result is None and isinstance(pattern, AnyDecimal):
        result = next((each for each in types if isinstance(each, DecimalType)), None)
    if result is None:
        raise StatementFailed(f"the type {pattern} of {signature.name} is not known")
    return result


def _hinted(made: Any, name: str) -> tuple[Signature, Pattern, int]:
    """The signature, the type of states and the number of literals; Any: the class."""
    state = _result_hint(made.initial, "initial")
    adding = list(inspect.signature(made.add).parameters.values())[2:]
    hints = get_type_hints(made.add, include_extras=True)
    columns = [parameter_of(each, hints) for each in adding]
    literals: list[Parameter] = []
    if "__init__" in vars(made):
        hints = get_type_hints(made.__init__, include_extras=True)
        given = list(inspect.signature(made.__init__).parameters.values())[1:]
        literals = [
            parameter_of(each, hints) for each in given if each.kind is not each.KEYWORD_ONLY
        ]
    shown = _result_hint(made.result, "result") if hasattr(made, "result") else state
    return Signature(name, (*columns, *literals), shown), state, len(literals)


def _result_hint(method: Callable[..., Any], name: str) -> Pattern:
    hints = get_type_hints(method, include_extras=True)
    if "return" not in hints:
        raise ValueError(f'the result of "{name}" has no type hint, and there is no signature')
    return pattern_of(hints["return"])
