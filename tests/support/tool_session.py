"""Runs Kafka's command-line tools, one after the other in one JVM."""

import json
import subprocess
from pathlib import Path
from typing import Self

from tests.support.apache_kafka import TOOL_CLASSES, KafkaRelease, ToolFailed, java_command

_SOURCE = Path(__file__).parent / "java" / "ToolServer.java"


class ToolSession:
    """A JVM that runs tools on request; one at a time."""

    def __init__(self, release: KafkaRelease) -> None:
        self._process = subprocess.Popen(
            java_command(release.compile(_SOURCE), "ToolServer"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, program: str, *args: str) -> str:
        """Runs a tool by its name and returns its output; raises ToolFailed if it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        json.dump([TOOL_CLASSES[program], *args], self._process.stdin)
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ToolFailed(f"{program} ended the JVM")
        answer = json.loads(line)
        output: str = answer["output"]
        if answer["code"] != 0:
            command = " ".join([program, *args])
            raise ToolFailed(f"{command} ended with {answer['code']}\n{output}\n{answer['errors']}")
        return output

    def close(self) -> None:
        """Ends the JVM."""
        assert self._process.stdout is not None
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
