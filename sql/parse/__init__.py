"""The parser: SQL text to syntax trees."""

from sql.parse.text import (
    ParsedStatement,
    parse,
    parse_expression,
    parse_statement,
    parse_type,
)

__all__ = ["ParsedStatement", "parse", "parse_expression", "parse_statement", "parse_type"]
