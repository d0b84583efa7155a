"""Protobuf messages to values: a code generator, whose bytes Google's library reads."""
