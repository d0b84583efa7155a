"""Functions of users, found by settings and by options."""

from pathlib import Path

import pytest

from sql.engine.extensions import functions_of
from sql.engine.settings import SqlConfig
from sql.errors import SqlError
from sql.functions.builtin import builtin_functions

CODE = """
from sql import udf

@udf
def {name}(text: str) -> str:
    return text + text
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("doubled", "twice"):
        (tmp_path / f"{name}.py").write_text(CODE.format(name=name))
    return tmp_path


def test_the_folder_of_the_setting_is_loaded(folder: Path) -> None:
    found = functions_of(SqlConfig({"ksql.extension.dir": str(folder)}))
    assert {"DOUBLED", "TWICE", "ABS"} <= {each.name for each in found}


def test_files_are_loaded(folder: Path) -> None:
    names = {each.name for each in functions_of(SqlConfig(), [folder / "twice.py"])}
    assert "TWICE" in names
    assert "DOUBLED" not in names


def test_nothing_is_loaded_unless_it_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever lies in a folder "ext" is not run, though ksqlDB's default names it."""
    folder.joinpath("ext").mkdir()
    folder.joinpath("ext", "wrong.py").write_text("raise ValueError")
    monkeypatch.chdir(folder)
    assert functions_of(SqlConfig()) is builtin_functions()
    off = SqlConfig({"ksql.extension.dir": str(folder), "ksql.udfs.enabled": False})
    assert functions_of(off) is builtin_functions()


def test_a_folder_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=r"cannot load functions: .* does not exist"):
        functions_of(SqlConfig({"ksql.extension.dir": str(tmp_path / "none")}))
