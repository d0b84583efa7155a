"""Java's properties files."""

import pytest

from broker.errors import ConfigError
from broker.properties_file import read_properties


def test_properties_are_read_as_java_writes_them() -> None:
    text = "# note\n! note\na=1\nb : x=y\n\nc = one,\\\n  two\n"
    assert read_properties(text, name="f") == {"a": "1", "b": "x=y", "c": "one,two"}


def test_a_line_that_is_no_setting_is_shown_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"server\.properties line 2"):
        read_properties("a=1\nnothing\n", name="server.properties")


def test_a_backslash_escapes_the_sign_after_it() -> None:
    text = r"""
path=C\:\\data\tx
a\ key\==\u00e4
word value of it
# no \
last=\\
"""
    assert read_properties(text, name="f") == {
        "path": "C:\\data\tx",
        "a key=": "\u00e4",
        "word": "value of it",
        "last": "\\",
    }
