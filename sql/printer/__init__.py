"""Prints syntax trees as SQL, which is parsed to the same trees."""

from sql.printer.expressions import name_text, print_expression, print_type
from sql.printer.statements import print_query, print_statement

__all__ = ["name_text", "print_expression", "print_query", "print_statement", "print_type"]
