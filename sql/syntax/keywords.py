"""Keywords: those that cannot be names, and those that begin statements."""

from difflib import get_close_matches

WORD_MAX = 20
STATEMENT_WORDS = (
    *("ALTER", "ASSERT", "CREATE", "DEFINE", "DESCRIBE", "DROP", "EXPLAIN", "INSERT", "LIST"),
    *("PAUSE", "PRINT", "RESUME", "SELECT", "SET", "SHOW", "TERMINATE", "UNDEFINE", "UNSET"),
)
RESERVED = frozenset(
    {
        *("ADVANCE", "ALL", "AND", "AS", "AT", "BEGINNING", "BETWEEN", "BY", "CASE", "CAST"),
        *("CONNECTOR", "CONNECTORS", "CREATE", "DAYS", "DELETE", "DESCRIBE", "DISTINCT", "DROP"),
        *("ELSE", "END", "EXISTS", "EXTENDED", "FALSE", "FROM", "FULL", "GROUP", "HAVING"),
        *("HOPPING", "HOURS", "IN", "INNER", "INSERT", "INTO", "IS", "JOIN", "LEFT", "LIKE"),
        *("LIMIT", "LIST", "MILLISECOND", "MILLISECONDS", "MINUTES", "MONTHS", "NOT", "NULL"),
        *("ON", "OR", "OUTER", "PAUSE", "PRINT", "PROPERTIES", "QUERIES", "RESUME", "RETENTION"),
        *("RIGHT", "RUN", "SAMPLE", "SCRIPT", "SECONDS", "SELECT", "SIZE", "STREAM", "STREAMS"),
        *("TABLE", "TERMINATE", "THEN", "TOPIC", "TOPICS", "TRUE", "TUMBLING", "UNSET", "VALUES"),
        *("WHEN", "WHERE", "WINDOW", "WITH", "WITHIN", "YEARS"),
    }
)


def closest_statement(word: str) -> str | None:
    """The statement keyword that was probably meant.

    >>> closest_statement("SELET")
    'SELECT'
    """
    found = get_close_matches(word[:WORD_MAX].upper(), STATEMENT_WORDS, n=1)
    return found[0] if found else None
