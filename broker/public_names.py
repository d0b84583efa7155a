"""Public names of packages: a package exports them, and imports each one on first use."""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def public_names(
    package: str, modules: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, from the names that each of its modules defines.

    Type checkers do not see these names, so the package also imports them in TYPE_CHECKING:

        if TYPE_CHECKING:
            from broker.broker import Broker
        else:
            __getattr__, __dir__ = public_names(__name__, {"broker": ["Broker"]})
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # later uses do not call this function
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return get, names
