"""Small text files beside the logs.

*-offset-checkpoint        0 \\n count \\n (topic partition offset \\n)*
leader-epoch-checkpoint    0 \\n count \\n (epoch start-offset \\n)*
partition.metadata         version: 0 \\n topic_id: base64 \\n
meta.properties            key=value lines: version, cluster.id, node.id, directory.id
.kafka_cleanshutdown       JSON; it exists if the logs were closed cleanly
"""

import base64
import os
from collections.abc import Mapping

from broker.files import FileSystem
from broker.model import TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'
VERSION_LINE = "0"
ID_BYTES = 16


def read_offsets(files: FileSystem, folder: str, name: str) -> dict[TopicPartition, int]:
    """Offsets by partition; empty if the file is missing or damaged: it only saves work."""
    found = {}
    try:
        for fields in read_table(files, os.path.join(folder, name)):
            topic, partition, offset = fields
            found[TopicPartition(topic, int(partition))] = int(offset)
    except ValueError:
        return {}
    return found


def read_leader_epochs(files: FileSystem, folder: str) -> list[tuple[int, int]]:
    """Epochs with their start offsets; empty if the file is missing or damaged."""
    try:
        rows = read_table(files, os.path.join(folder, LEADER_EPOCHS))
        return [(int(epoch), int(offset)) for epoch, offset in rows]
    except ValueError:
        return []


def write_leader_epochs(files: FileSystem, folder: str, epochs: list[tuple[int, int]]) -> None:
    """Write epochs with their start offsets."""
    rows = [f"{epoch} {offset}" for epoch, offset in epochs]
    write_table(files, os.path.join(folder, LEADER_EPOCHS), rows, durable=False)


def read_table(files: FileSystem, path: str) -> list[list[str]]:
    """The rows of a checkpoint file; ValueError if it is damaged."""
    data = files.read_file(path)
    if data is None:
        return []
    lines = data.decode(errors="replace").splitlines()
    if len(lines) < 2 or lines[0] != VERSION_LINE or int(lines[1]) != len(lines) - 2:
        raise ValueError("no checkpoint")
    return [line.split(" ") for line in lines[2:]]


def write_table(files: FileSystem, path: str, rows: list[str], *, durable: bool = True) -> None:
    """Replace a checkpoint file atomically."""
    text = "\n".join([VERSION_LINE, str(len(rows)), *rows]) + "\n"
    files.write_file(path, text.encode(), durable=durable)


def read_topic_id(files: FileSystem, folder: str) -> bytes | None:
    """The id of a folder's topic; None if it is unknown."""
    data = files.read_file(os.path.join(folder, PARTITION_METADATA)) or b""
    for line in data.decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name == "topic_id":
            return id_from_text(value.strip())
    return None


def write_topic_id(files: FileSystem, folder: str, topic_id: bytes) -> None:
    """Write the id of a folder's topic."""
    text = f"version: 0\ntopic_id: {id_to_text(topic_id)}\n"
    files.write_file(os.path.join(folder, PARTITION_METADATA), text.encode(), durable=False)


def read_meta(files: FileSystem, folder: str) -> dict[str, str]:
    """The values in meta.properties."""
    data = files.read_file(os.path.join(folder, META_PROPERTIES))
    if data is None:
        return {}
    pairs = (line.partition("=") for line in data.decode(errors="replace").splitlines())
    return {name.strip(): value.strip() for name, sign, value in pairs if sign and name[0] != "#"}


def write_meta(files: FileSystem, folder: str, values: Mapping[str, str]) -> None:
    """Write meta.properties."""
    text = "".join(f"{name}={value}\n" for name, value in values.items())
    files.write_file(os.path.join(folder, META_PROPERTIES), text.encode())


def id_to_text(identifier: bytes) -> str:
    """A 16-byte id in Kafka's format: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(identifier).decode().rstrip("=")


def id_from_text(text: str) -> bytes | None:
    """The 16 bytes of an id; None if it is invalid."""
    try:
        found = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError:
        return None
    return found if len(found) == ID_BYTES else None
