"""Freed memory stays with the process where the C library can do that."""

import platform
import subprocess
import sys

import pytest

from streams.runtime.freed_memory import keep_freed_memory

# Pieces that come and go, small enough for the heap and larger than what the heap keeps by itself.
CHURN = """
import resource
from streams.runtime.freed_memory import keep_freed_memory
{keep}
def churn():
    pieces = [b"x" * 100_000 for _ in range(50)]
churn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    churn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(keep: str) -> int:
    command = [sys.executable, "-c", CHURN.format(keep=keep)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to")
def test_memory_that_was_freed_is_used_again_without_asking_the_system() -> None:
    assert faults("keep_freed_memory()") < 100 < faults("")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to")
def test_glibc_is_told() -> None:
    assert keep_freed_memory()
