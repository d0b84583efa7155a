"""Records as local files of JSON lines or Parquet."""

from connect.connectors.files_sink.connector import FilesSinkConnector, FilesSinkTask

__all__ = ["FilesSinkConnector", "FilesSinkTask"]
