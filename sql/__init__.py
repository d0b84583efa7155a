"""SQL: ksqlDB's dialect on streams.

    from broker import Broker
    from sql import Engine

    with Broker(data_directory="./data") as broker:
        with Engine(broker, data_directory="./sql-data") as engine:
            engine.execute("CREATE STREAM orders (id INT KEY, total DOUBLE) WITH (...);")

`udf`, `udaf` and `udtf` declare functions in files that the setting `ksql.extension.dir` names.
"""

from typing import TYPE_CHECKING

from broker.public_names import public_names

if TYPE_CHECKING:
    from sql.client import SqlClient
    from sql.engine.engine import Engine
    from sql.engine.results import QueryResult, ResultColumn, ResultRow
    from sql.engine.settings import SqlConfig
    from sql.errors import SqlError
    from sql.functions.user import udaf, udf, udtf
    from sql.server.server import SqlServer
else:
    # The engine takes a second to import, and most modules of this package need only a part of it.
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "client": ["SqlClient"],
            "engine.engine": ["Engine"],
            "engine.results": ["QueryResult", "ResultColumn", "ResultRow"],
            "engine.settings": ["SqlConfig"],
            "errors": ["SqlError"],
            "functions.user": ["udaf", "udf", "udtf"],
            "server.server": ["SqlServer"],
        },
    )


__all__ = [
    "Engine",
    "QueryResult",
    "ResultColumn",
    "ResultRow",
    "SqlClient",
    "SqlConfig",
    "SqlError",
    "SqlServer",
    "udaf",
    "udf",
    "udtf",
]
