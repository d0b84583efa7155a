"""CaseFailed: a case did not have the expected result."""


class CaseFailed(Exception):
    """The message describes the difference."""
