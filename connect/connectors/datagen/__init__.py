"""Generated records: quickstarts, or an Avro schema that defines the values."""

from connect.connectors.datagen.connector import DatagenConnector
from connect.connectors.datagen.task import DatagenTask

__all__ = ["DatagenConnector", "DatagenTask"]
