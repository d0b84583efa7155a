"""`python -m tests.support.import_directions`: import-linter with pyproject.toml's contracts."""

import sys

from importlinter import cli

if __name__ == "__main__":
    sys.exit(cli.lint_imports())
