"""User-defined functions in Python, from a file or a folder of files.

    from sql import udaf, udf, udtf

    @udf
    def discount(price: float, percent: int) -> float:
        "The price after a discount."
        return price * (100 - percent) / 100

    @udtf("LETTERS(text STRING) -> STRING")
    def letters(text):
        return list(text)

    @udaf
    class LongestText:
        "The length of the longest text."
        def initial(self) -> int: return 0
        def add(self, state: int, text: str) -> int: return max(state, len(text))
        def merge(self, left: int, right: int) -> int: return max(left, right)

The name is that of the function or class, the description the first line of the docstring. The
types come from the hints (see type_hints.py) or from a signature. With a null argument the result
is null and the function is not called, unless a hint allows null; `add` of aggregates is always
called. Parameters with defaults are optional, `*values` are variadic, several decorators declare
overloads.

A class may also have `undo`, for tables, and `result`, which returns the value of a state. The
parameters of its `__init__` are literals at the end of a call; a keyword `settings` gets the
query's settings.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints, overload
from zlib import crc32

from sql.datatypes import DecimalType
from sql.errors import SqlError
from sql.functions.builtin import FAMILIES, builtin_functions
from sql.functions.decimals import HALF_AWAY_FROM_ZERO, rounded
from sql.functions.registry import Family, FunctionRegistry
from sql.functions.signature_text import read_signature
from sql.functions.signatures import Parameter, Pattern, Signature
from sql.functions.type_hints import Digits, is_nullable, parameter_of, pattern_of
from sql.functions.user_aggregates import user_aggregate

__all__ = [
    "Digits",
    "families_at",
    "family_of",
    "load_functions",
    "registry_with",
    "udaf",
    "udf",
    "udtf",
]

USER_CATEGORY = "USER"

_MARK = "__sql_functions__"
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ROWS = (list, Iterable, Iterator)

F = TypeVar("F", bound=Callable[..., Any])  # Any: users' functions have any types


@dataclass(frozen=True, slots=True)
class Declared:
    """The arguments of a decorator."""

    kind: str
    signature: str
    description: str
    nulls: bool | None = None
    volatile: bool = False
    state: str = ""
    constants: int = 0


def _marked(first: object, declared: Declared) -> Any:  # Any: the decorated, or a decorator
    def mark(function: F) -> F:
        # A separate list, not that of a base class.
        setattr(function, _MARK, [*vars(function).get(_MARK, ()), declared])
        return function

    return mark(first) if callable(first) else mark


def _text(first: object) -> str:
    return first if isinstance(first, str) else ""


@overload
def udf(signature: F) -> F: ...
@overload
def udf(
    signature: str = "", *, description: str = "", nulls: bool | None = None, volatile: bool = False
) -> Callable[[F], F]: ...
def udf(
    signature: object = "",
    *,
    description: str = "",
    nulls: bool | None = None,
    volatile: bool = False,
) -> Any:  # Any: see the overloads
    """Declare a scalar function; `volatile` if equal arguments may give different results."""
    declared = Declared("udf", _text(signature), description, nulls, volatile)
    return _marked(signature, declared)


@overload
def udtf(signature: F) -> F: ...
@overload
def udtf(
    signature: str = "", *, description: str = "", nulls: bool | None = None
) -> Callable[[F], F]: ...
def udtf(signature: object = "", *, description: str = "", nulls: bool | None = None) -> Any:
    """Declare a table function; a signature's result is that of one row."""
    return _marked(signature, Declared("udtf", _text(signature), description, nulls))


@overload
def udaf(signature: F) -> F: ...
@overload
def udaf(
    signature: str = "", *, description: str = "", state: str = "", constants: int = 0
) -> Callable[[F], F]: ...
def udaf(
    signature: object = "", *, description: str = "", state: str = "", constants: int = 0
) -> Any:  # Any: see the overloads
    """Declare an aggregate; a signature needs the type of states and the number of literals."""
    declared = Declared("udaf", _text(signature), description, state=state, constants=constants)
    return _marked(signature, declared)


def load_functions(path: str | Path) -> Family:
    """The functions of a Python file, or of all files of a folder; SqlError if one is invalid."""
    found = Path(path)
    if not found.exists():
        raise SqlError(f'cannot load functions: "{found}" does not exist')
    files = sorted(found.glob("[!_]*.py")) if found.is_dir() else [found]
    family = Family(USER_CATEGORY, place=str(found.resolve()))
    for each in files:
        _collect(family, vars(_module(each)).values(), str(each))
    return family


def family_of(*functions: object, where: str = "here") -> Family:
    """The family of these functions, or of the functions of modules."""
    family = Family(USER_CATEGORY)
    for each in functions:
        found = list(vars(each).values()) if isinstance(each, ModuleType) else [each]
        _collect(family, found, where)
    return family


def families_at(place: str) -> list[Family]:
    """The functions of a file or folder by path, or of a module by name.

    A module may have created families itself; otherwise they are its declared functions.
    """
    if place.endswith(".py") or Path(place).is_absolute():
        return [load_functions(place)]
    try:
        module = import_module(place)
    except ImportError as error:
        raise SqlError(
            f'there is no module "{place}"', hint="it must be importable: check PYTHONPATH"
        ) from error
    made = [each for each in vars(module).values() if isinstance(each, Family)]
    return made or [family_of(module, where=place)]


def registry_with(places: Iterable[str]) -> FunctionRegistry:
    """The built-in functions, with those of files, folders and modules; see `families_at`."""
    families = [family for place in places for family in families_at(place)]
    return FunctionRegistry([*FAMILIES, *families]) if families else builtin_functions()


def _module(file: Path) -> ModuleType:
    # Files of the same name in two folders are different modules.
    place = crc32(str(file.resolve()).encode())
    spec = spec_from_file_location(f"sql_functions_{file.stem}_{place:08x}", file)
    if spec is None or spec.loader is None:
        raise SqlError(f'cannot load functions: "{file}" is not a Python file')
    module = module_from_spec(spec)
    # Dataclasses, for example, look up their module there.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any error of the user's code
        del sys.modules[spec.name]
        raise SqlError(
            f'cannot load the functions of "{file}": {type(error).__name__}: {error}'
        ) from error
    return module


def _collect(family: Family, values: Iterable[object], where: str) -> None:
    # Decorators are applied bottom-up, but the first overload is the top one.
    for function in values:
        declared = vars(function).get(_MARK, ()) if hasattr(function, "__dict__") else ()
        for each in reversed(declared):
            name = getattr(function, "__name__", str(function))
            try:
                _declare(family, function, each)
            except (ValueError, TypeError, NameError, AssertionError, SqlError) as error:
                why = error.message if isinstance(error, SqlError) else str(error)
                raise SqlError(f'cannot use function "{name}" of "{where}": {why}') from error


def _declare(family: Family, function: Any, declared: Declared) -> None:  # Any: a user's function
    description = declared.description or (inspect.getdoc(function) or "").partition("\n")[0]
    if declared.kind == "udaf":
        user_aggregate(
            family,
            function,
            read_signature(declared.signature) if declared.signature else sql_name(function),
            description,
            declared.state,
            declared.constants,
        )
        return
    table = declared.kind == "udtf"
    if declared.signature:
        signatures, nulls = [read_signature(declared.signature)], False
    else:
        signatures, nulls = _hinted(function, table=table)
    nulls = nulls if declared.nulls is None else declared.nulls
    for signature in signatures:
        _check_unique(family, signature)
        if table:
            family.table(signature, description, nulls=nulls)(_rows(function))
        else:
            call = _fitting(function, signature.result)
            family.scalar(signature, description, nulls=nulls, volatile=declared.volatile)(call)


def _check_unique(family: Family, signature: Signature) -> None:
    known = family.functions.get(signature.name.upper())
    patterns = [each.pattern for each in signature.parameters]
    for each in known.overloads if known else ():
        if [one.pattern for one in each.signature.parameters] == patterns:
            raise ValueError(f"another function takes the same arguments: {each.signature}")


def sql_name(function: Any) -> str:  # Any: a user's function or class
    """The upper-case name: LONGEST_TEXT for LongestText and longest_text."""
    return _WORD_STARTS.sub("_", function.__name__).upper()


def _hinted(function: Callable[..., Any], *, table: bool) -> tuple[list[Signature], bool]:
    """The signatures of the hints: an additional one per parameter with a default."""
    hints = get_type_hints(function, include_extras=True)
    if "return" not in hints:
        raise ValueError("its result has no type hint, and it has no signature")
    result = hints["return"]
    if table and get_origin(result) not in _ROWS:
        raise ValueError("a table function must return a list")
    parameters: list[Parameter] = []
    needed = 0
    for each in inspect.signature(function).parameters.values():
        parameters.append(parameter_of(each, hints))
        needed += each.default is each.empty and each.kind is not each.VAR_POSITIONAL
    shown = pattern_of(get_args(result)[0] if table else result)
    name = sql_name(function)
    nulls = any(is_nullable(hints[each.name]) for each in parameters)
    counts = range(needed, len(parameters) + 1)
    return [Signature(name, tuple(parameters[:count]), shown) for count in counts], nulls


def _rows(function: Callable[..., Any]) -> Callable[..., list[Any] | None]:
    def rows(*values: Any) -> list[Any] | None:
        found = function(*values)
        return found if found is None or type(found) is list else list(found)

    return rows


def _fitting(function: Callable[..., Any], result: Pattern) -> Callable[..., Any]:
    """The function, with decimals rounded to the scale of their type."""
    if not isinstance(result, DecimalType):
        return function
    scale, whole = result.scale, result.precision - result.scale

    def fitting(*values: Any) -> Decimal | None:
        found = function(*values)
        if found is None:
            return None
        number = rounded(Decimal(found), scale, HALF_AWAY_FROM_ZERO)
        if number and number.adjusted() >= whole:
            raise ValueError(f"{number:f} does not fit {result}")
        return number

    return fitting
