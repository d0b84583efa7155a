"""User-defined functions, from ksql.extension.dir and from given files."""

import logging
from collections.abc import Iterable
from pathlib import Path

from sql.engine.settings import SqlConfig
from sql.functions.builtin import FAMILIES, builtin_functions
from sql.functions.registry import FunctionRegistry
from sql.functions.user import load_functions

logger = logging.getLogger(__name__)

FOLDER = "ksql.extension.dir"
ENABLED = "ksql.udfs.enabled"


def functions_of(config: SqlConfig, paths: Iterable[Path] = ()) -> FunctionRegistry:
    """The built-in functions, those of ksql.extension.dir if it is set, and those of files.

    The files are executed as Python: unlike in ksqlDB, the setting has no default.
    """
    found = list(paths)
    folder = config.given.get(FOLDER)
    if folder:
        found.append(Path(str(folder)))
    if not found:
        return builtin_functions()
    if not config.flag(ENABLED):
        logger.warning("functions are not loaded: %s is false", ENABLED)
        return builtin_functions()
    return FunctionRegistry([*FAMILIES, *map(load_functions, found)])
