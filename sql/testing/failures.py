"""CaseFailed: a case did not do what it must."""


class CaseFailed(Exception):
    """The text says what was different."""
