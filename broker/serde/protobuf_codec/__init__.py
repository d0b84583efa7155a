"""Generates conversions between Protobuf messages and values; Google's library does the I/O."""
