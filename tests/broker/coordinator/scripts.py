"""Runs scripts of requests against one group, and says what happened: the language of cases/*.txt.

    > join A protocols=range        a command: A asks
    A: waits                        what came of it, one line per event
    > advance 3000                  time passes; whatever it brings is said
    A: joined generation 1 ...

A client is named by a letter and remembers its member id, generation or epoch, as a real one does.
REWRITE=1 writes what happened into the case; the diff is reviewed.
"""

import itertools
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from broker.clock import ManualClock
from broker.config import TopicConfig
from broker.coordinator.consumer_group import (
    ConsumerGroup,
    ConsumerGroupRules,
    Heartbeat,
    HeartbeatResult,
)
from broker.coordinator.group import ClassicGroup, GroupRules, Saved
from broker.coordinator.group_members import Join, JoinResult, Sync, SyncResult
from broker.coordinator.topic_pattern import PatternMatches
from broker.coordinator.topics import Topic
from broker.errors import BrokerError, ErrorCode
from broker.handlers.groups import JOIN_TWICE_VERSION_MIN, SKIP_ASSIGNMENT_VERSION_MIN
from broker.pending import Pending

CASES = Path(__file__).parent / "cases"
RULES = GroupRules(
    initial_rebalance_delay_ms=3000,
    size_max=3,
    session_timeout_min_ms=6000,
    session_timeout_max_ms=1_800_000,
)
CONSUMER_RULES = ConsumerGroupRules(
    session_timeout_ms=45_000,
    heartbeat_interval_ms=5000,
    size_max=3,
    assignors=("uniform", "range"),
)


def case_files(kind: str) -> list[Path]:
    """All cases of a kind."""
    return sorted((CASES / kind).glob("*.txt"))


def check_case(path: Path, script: "ClassicScript | ConsumerScript") -> None:
    """Run a case and compare, or with REWRITE=1 write down what happened."""
    expected = path.read_text()
    lines: list[str] = []
    for line in expected.splitlines():
        if line.startswith("#"):
            lines.append(line)
        elif line.startswith("> "):
            lines.append(line)
            script.said.clear()
            lines += script.run([line.removeprefix("> ")])
    found = "".join(f"{line}\n" for line in lines)
    if os.environ.get("REWRITE"):
        path.write_text(found)
    else:
        assert found == expected


def parse(line: str) -> tuple[str, str, dict[str, str]]:
    """A command: verb, client, options."""
    verb, *words = line.split()
    options = dict(word.split("=", 1) for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    return verb, plain[0] if plain else "", options


class ClassicScript:
    """Clients of a classic group."""

    def __init__(self) -> None:
        """An empty group; saves succeed at once until `hold` says otherwise."""
        self.said: list[str] = []
        self.clock = ManualClock()
        numbers = itertools.count(1)
        self.group = ClassicGroup(
            "g",
            rules=RULES,
            clock=self.clock,
            new_id=lambda: str(next(numbers)),
            save=self._save,
        )
        self._ids: dict[str, str] = {}
        self._generations: dict[str, int] = {}
        self._held: list[Saved] | None = None

    def run(self, lines: list[str]) -> list[str]:
        """Run all commands; what was said."""
        for line in lines:
            verb, client, options = parse(line)
            getattr(self, f"do_{verb}")(client, options)
        return self.said

    def _save(self, group: ClassicGroup, assignments: Mapping[str, bytes], saved: Saved) -> None:
        given = ", ".join(f"{key}={value.decode()}" for key, value in assignments.items())
        self.said.append(f"saved generation {group.generation}: {given}")
        if self._held is None:
            saved(ErrorCode.NONE)
        else:
            self._held.append(saved)

    def do_hold(self, client: str, options: dict[str, str]) -> None:
        """Saves wait for `release`."""
        self._held = []

    def do_release(self, client: str, options: dict[str, str]) -> None:
        """The disk is done, well or badly."""
        held, self._held = self._held or [], None
        for saved in held:
            saved(ErrorCode[options.get("error", "NONE")])

    def do_join(self, client: str, options: dict[str, str]) -> None:
        """JoinGroup with what the client remembers."""
        names = options.get("protocols", "range").split(",")
        metadata = options.get("metadata", client)
        version = int(options.get("version", "9"))
        answer = self.group.join(
            Join(
                member_id=options.get("id", self._ids.get(client, "")),
                instance_id=options.get("instance"),
                client_id=client,
                client_host="",
                session_timeout_ms=int(options.get("session", "10000")),
                rebalance_timeout_ms=int(options.get("rebalance", "60000")),
                protocol_type=options.get("type", "consumer"),
                protocols=[(name, metadata.encode()) for name in names if name],
                joins_twice=version >= JOIN_TWICE_VERSION_MIN,
                may_skip_assignment=version >= SKIP_ASSIGNMENT_VERSION_MIN,
            )
        )
        self._hear(client, answer, self._joined)
        self._tick()

    def _joined(self, client: str, answer: JoinResult) -> None:
        if answer.error:
            self.said.append(f"{client}: {answer.error.name} {answer.member_id}")
            if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
                self._ids[client] = answer.member_id
            return
        self._ids[client] = answer.member_id
        self._generations[client] = answer.generation
        line = f"{client}: joined generation {answer.generation} as {answer.member_id}"
        line += f", {answer.protocol}, leader {answer.leader}"
        if answer.members:
            members = (f"{item.member_id}={item.metadata.decode()}" for item in answer.members)
            line += f", members {' '.join(members)}"
        self.said.append(line + (", skip assignment" if answer.skip_assignment else ""))

    def do_sync(self, client: str, options: dict[str, str]) -> None:
        """SyncGroup; assign=A:work,B:more by clients."""
        given = (part.split(":") for part in options.get("assign", "").split(",") if part)
        asked = Sync(
            member_id=options.get("id", self._ids.get(client, "")),
            instance_id=options.get("instance"),
            generation=int(options.get("generation", self._generations.get(client, -1))),
            protocol_type=options.get("type"),
            protocol=options.get("protocol"),
            assignments={self._ids[name]: work.encode() for name, work in given},
        )
        self._hear(client, self.group.sync(asked), self._synced)

    def _synced(self, client: str, answer: SyncResult) -> None:
        if answer.error:
            self.said.append(f"{client}: {answer.error.name}")
        else:
            self.said.append(f"{client}: works on {answer.assignment.decode()!r}")

    def do_heartbeat(self, client: str, options: dict[str, str]) -> None:
        """Heartbeat."""
        error = self.group.heartbeat(
            options.get("id", self._ids.get(client, "")),
            options.get("instance"),
            int(options.get("generation", self._generations.get(client, -1))),
        )
        self.said.append(f"{client}: {error.name}")

    def do_commit(self, client: str, options: dict[str, str]) -> None:
        """Whether an offset commit would be accepted."""
        error = self.group.check_commit(
            options.get("id", self._ids.get(client, "")),
            options.get("instance"),
            int(options.get("generation", self._generations.get(client, -1))),
            transactional="transactional" in options,
        )
        self.said.append(f"{client or 'nobody'}: commit {error.name}")

    def do_leave(self, client: str, options: dict[str, str]) -> None:
        """LeaveGroup of one member."""
        error = self.group.leave(
            options.get("id", self._ids.get(client, "")), options.get("instance")
        )
        self.said.append(f"{client or 'somebody'}: left {error.name}")
        self._tick()

    def do_forget(self, client: str, options: dict[str, str]) -> None:
        """The client's process starts anew: it knows nothing."""
        self._ids.pop(client, None)
        self._generations.pop(client, None)

    def do_advance(self, client: str, options: dict[str, str]) -> None:
        """Time passes, deadline by deadline."""
        end_ms = self.clock.monotonic_ms() + int(client)
        while True:
            due_ms = self.group.next_deadline_ms()
            if due_ms is None or due_ms > end_ms:
                break
            self.clock.advance(max(due_ms - self.clock.monotonic_ms(), 0))
            self.group.tick()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def do_state(self, client: str, options: dict[str, str]) -> None:
        """Say how the group is."""
        group = self.group
        members = " ".join(member.member_id for member in group.members) or "none"
        self.said.append(f"{group.state.value} generation {group.generation}, members {members}")

    def _tick(self) -> None:
        due_ms = self.group.next_deadline_ms()
        if due_ms is not None and due_ms <= self.clock.monotonic_ms():
            self.group.tick()

    def _hear(self, client: str, answer: object, heard: Callable[..., None]) -> None:
        if isinstance(answer, Pending):
            if not answer.done:
                self.said.append(f"{client}: waits")
            answer.then(lambda value: heard(client, value))
        else:
            heard(client, answer)


def topic_id(name: str) -> bytes:
    """In scripts the id of a topic is its name."""
    return name.encode().ljust(16, b"\0")


class ConsumerScript:
    """Clients of a consumer group."""

    def __init__(self) -> None:
        """No topics, no members."""
        self.said: list[str] = []
        self.clock = ManualClock()
        self.topics: dict[str, Topic] = {}
        self.group = self.new_group()
        self._epochs: dict[str, int] = {}

    def run(self, lines: list[str]) -> list[str]:
        """Run all commands; what was said."""
        for line in lines:
            verb, client, options = parse(line)
            getattr(self, f"do_{verb}")(client, options)
        return self.said

    def new_group(self) -> ConsumerGroup:
        """A group over the script's topics, without members."""
        return ConsumerGroup(
            "g",
            rules=CONSUMER_RULES,
            clock=self.clock,
            find_topic=self.topics.get,
            matches=PatternMatches(lambda: sorted(self.topics)),
        )

    def do_topic(self, name: str, options: dict[str, str]) -> None:
        """A topic is made, grows, or goes (partitions=0)."""
        count = int(options["partitions"])
        if count:
            self.topics[name] = Topic(name, topic_id(name), count, {}, TopicConfig())
        else:
            del self.topics[name]
        self.group.topics_changed()

    def do_join(self, client: str, options: dict[str, str]) -> None:
        """A first heartbeat, with everything in it."""
        pattern = options.get("pattern")
        names = [name for name in options.get("topics", "").split(",") if name]
        asked = self._heartbeat(client, options)
        asked.epoch = 0
        asked.rebalance_timeout_ms = int(options.get("rebalance", "60000"))
        asked.subscribed_names = names if pattern is None else None
        asked.subscribed_regex = pattern
        asked.owned = frozenset()
        self._send(client, asked)

    def do_beat(self, client: str, options: dict[str, str]) -> None:
        """A heartbeat; owned=t:0,t:1 or owned=none reports what the client has."""
        asked = self._heartbeat(client, options)
        if "topics" in options:
            asked.subscribed_names = options["topics"].split(",")
        if "owned" in options:
            pairs = [pair.split(":") for pair in options["owned"].split(",") if ":" in pair]
            asked.owned = frozenset((topic_id(name), int(number)) for name, number in pairs)
        self._send(client, asked)

    def do_leave(self, client: str, options: dict[str, str]) -> None:
        """The last heartbeat; epoch=-2 for a static member that will be back."""
        asked = self._heartbeat(client, options)
        asked.epoch = int(options.get("epoch", "-1"))
        try:
            answer = self.group.leave(asked)
        except BrokerError as error:
            self.said.append(f"{client}: {error.code.name}")
        else:
            self.said.append(f"{client}: left {answer.epoch}")

    def _heartbeat(self, client: str, options: dict[str, str]) -> Heartbeat:
        return Heartbeat(
            member_id=options.get("id", client),
            epoch=int(options.get("epoch", self._epochs.get(client, 0))),
            instance_id=options.get("instance"),
            client_id=client,
            server_assignor=options.get("assignor"),
        )

    def _send(self, client: str, asked: Heartbeat) -> None:
        try:
            answer = self.group.heartbeat(asked)
        except BrokerError as error:
            self.said.append(f"{client}: {error.code.name}")
            return
        self._epochs[client] = answer.epoch
        self.said.append(f"{client}: epoch {answer.epoch}{_given(answer)}")

    def do_advance(self, client: str, options: dict[str, str]) -> None:
        """Time passes."""
        self.clock.advance(int(client))
        due_ms = self.group.next_deadline_ms()
        if due_ms is not None and due_ms <= self.clock.monotonic_ms():
            self.group.tick()

    def do_commit(self, client: str, options: dict[str, str]) -> None:
        """Whether an offset commit would be accepted."""
        error = self.group.check_commit(
            options.get("id", client),
            None,
            int(options.get("epoch", self._epochs.get(client, -1))),
            transactional="transactional" in options,
        )
        self.said.append(f"{client or 'nobody'}: commit {error.name}")

    def do_state(self, client: str, options: dict[str, str]) -> None:
        """Say how the group is."""
        group = self.group
        members = " ".join(
            f"{key}={member.holding.state.name}" for key, member in group.members.items()
        )
        line = f"{group.state} epoch {group.epoch} target {group.target_epoch}"
        self.said.append(f"{line}, members {members or 'none'}")


def _given(answer: HeartbeatResult) -> str:
    if answer.assigned is None:
        return ""
    given = [
        f"{topic.rstrip(bytes(1)).decode()}:{number}" for topic, number in sorted(answer.assigned)
    ]
    return f", assigned {' '.join(given) or 'nothing'}"
