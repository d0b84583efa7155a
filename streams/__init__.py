"""Streams: build a topology with the DSL or the Processor API, and run it.

    builder = StreamsBuilder()
    builder.stream("words", key=str, value=str).group_by_key().count().to_stream().to("counts")
    topology = builder.build()

`streams.testing` has a driver that runs a topology without a broker.
"""

from typing import TYPE_CHECKING

from broker.public_names import public_names
from streams.config import StreamsConfig
from streams.dsl.branched import BranchedStream
from streams.dsl.builder import StreamsBuilder
from streams.dsl.cogrouped import CogroupedStream
from streams.dsl.grouped import GroupedStream, GroupedTable
from streams.dsl.stored import Stored, stored
from streams.dsl.stream import Stream
from streams.dsl.suppressed import until_time_limit, until_window_closes
from streams.dsl.table import GlobalTable, Table
from streams.dsl.windowed import SessionWindowedStream, TimeWindowedStream
from streams.errors import StreamsError, TopologyError
from streams.processor import Processor, ProcessorContext, PunctuationType
from streams.record import Record, Windowed
from streams.state.store import StoreKind, StoreSpec
from streams.stream_time import (
    TimestampExtractor,
    fail_on_invalid_timestamp,
    log_and_skip_on_invalid_timestamp,
    use_partition_time_on_invalid_timestamp,
)
from streams.topology import Topology
from streams.topology_builder import TopologyBuilder
from streams.windows import hopping, join_within, session, sliding, tumbling, unlimited

if TYPE_CHECKING:
    from streams.app import AppState, OnFailure, SharedRuntime, StreamsApp
else:
    # Building a topology does not need the runtime, which brings clients, a broker and RocksDB.
    __getattr__, __dir__ = public_names(
        __name__, {"app": ["AppState", "OnFailure", "SharedRuntime", "StreamsApp"]}
    )


__all__ = [
    "AppState",
    "BranchedStream",
    "CogroupedStream",
    "GlobalTable",
    "GroupedStream",
    "GroupedTable",
    "OnFailure",
    "Processor",
    "ProcessorContext",
    "PunctuationType",
    "Record",
    "SessionWindowedStream",
    "SharedRuntime",
    "StoreKind",
    "StoreSpec",
    "Stored",
    "Stream",
    "StreamsApp",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "Table",
    "TimeWindowedStream",
    "TimestampExtractor",
    "Topology",
    "TopologyBuilder",
    "TopologyError",
    "Windowed",
    "fail_on_invalid_timestamp",
    "hopping",
    "join_within",
    "log_and_skip_on_invalid_timestamp",
    "session",
    "sliding",
    "stored",
    "tumbling",
    "unlimited",
    "until_time_limit",
    "until_window_closes",
    "use_partition_time_on_invalid_timestamp",
]
