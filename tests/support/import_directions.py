"""`python -m tests.support.import_directions`: import-linter on the contracts of pyproject.toml."""

import sys

from importlinter import cli

if __name__ == "__main__":
    sys.exit(cli.lint_imports())
