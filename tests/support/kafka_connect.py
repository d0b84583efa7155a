"""Kafka Connect's own transforms, predicates and ConfigDefs, in one JVM."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from tests.support.apache_kafka import fetch_apache_kafka, java_command, run_java
from tests.support.peer import PeerMissing, skip_without_peer

SOURCE = Path(__file__).parent / "java" / "ConnectPeer.java"


# Any: JSON of any shape.
def ask_kafka_connect(requests: Sequence[object]) -> list[Any]:
    """Send requests to ConnectPeer.java and return its responses; skip the test without Java."""
    try:
        class_path = fetch_apache_kafka().compile(SOURCE)
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")
    lines = "".join(orjson.dumps(request).decode() + "\n" for request in requests)
    answers = run_java(java_command(class_path, "ConnectPeer"), stdin=lines).splitlines()
    return [orjson.loads(answer) for answer in answers]
