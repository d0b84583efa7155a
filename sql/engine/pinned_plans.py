"""Pinned plans: the config topic of headless servers, which have no command topic.

`_confluent-ksql-<service id>configs` has one partition and is compacted. A record is a command as
in the command topic (command_log.py): a statement of the file, its plan and the settings that its
query keeps. The key is the number of the statement and the id of its command, as in
"3/stream/`BIG`/create"; the number is the one in the id of its query. A plan has one more member:

    "basis": {...}     the sources, types and SET properties that the plan depends on

Statements are identified by their content, not by their position, white space or comments. An
edited statement takes over the pin of the statement that created the same stream or table before.
Pins of removed statements stay: a statement that comes back continues.

Several servers may start at once: a server writes only if no other has written since its read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from broker.client.opening import Target
from sql.command_log import Command, CommandLog, DamagedCommand, TakenOver
from sql.errors import SqlError
from sql.parse import parse
from sql.printer import print_statement
from sql.syntax import statements as st

Slot = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Pin:
    """The command of a statement of the file, and the number in the id of its query."""

    number: int
    command: Command
    printed: str
    slot: Slot | None


@dataclass(frozen=True, slots=True)
class PinMatch:
    """The pin of a statement: its own, or that of the statement before it was edited."""

    pin: Pin
    is_same: bool


class PinnedPlans:
    """The pins of a service; not thread-safe."""

    def __init__(self, target: Target, topic: str) -> None:
        self._log = CommandLog(target, topic, cleanup_policy="compact")
        self._pins: dict[int, Pin] = {}

    def open(self) -> None:
        """Create the topic if it does not exist, and read it."""
        self._log.open()
        try:
            self.read()
        finally:
            self._log.close()

    def read(self) -> bool:
        """Read the pins of other servers; whether there were any."""
        result = False
        for logged in self._log.unread():
            pin = self._pin(logged.command, logged.offset)
            self._pins[pin.number] = pin
            result = True
        return result

    def _pin(self, command: Command, offset: int) -> Pin:
        number, _, command_id = command.id.partition("/")
        if not number.isdecimal() or command.plan is None:
            raise DamagedCommand(
                f'offset {offset} of topic "{self._log.topic}" is not a pinned plan',
                hint="restore the topic from a backup, or use another ksql.service.id",
            )
        try:
            [parsed] = parse(command.statement)
            printed, slot = printed_text(parsed.statement), _slot(parsed.statement)
        except (SqlError, ValueError):  # of another version: only the same SQL text matches
            printed, slot = command.statement, None
        return Pin(int(number), replace(command, id=command_id), printed, slot)

    @property
    def is_empty(self) -> bool:
        """Whether no plan was ever pinned."""
        return not self._pins

    @property
    def next_number(self) -> int:
        """The number of the next new statement; numbers of pins are never reused."""
        return max(self._pins, default=-1) + 1

    def matched(self, statements: Sequence[st.Statement]) -> list[PinMatch | None]:
        """The pin of each statement of a file, in the order of the file."""
        unused = dict(sorted(self._pins.items()))
        result: list[PinMatch | None] = []
        for statement in statements:
            printed = printed_text(statement)
            same = next((each for each in unused.values() if each.printed == printed), None)
            if same is not None:
                del unused[same.number]
            result.append(None if same is None else PinMatch(same, is_same=True))
        for place, statement in enumerate(statements):
            if result[place] is None:
                before = _edited(statement, unused.values())
                if before is not None:
                    del unused[before.number]
                    result[place] = PinMatch(before, is_same=False)
        return result

    def write(self, pins: Iterable[tuple[int, Command]]) -> bool:
        """Write pins, all or none; False: another server has written, so read and plan again."""
        commands = [replace(each, id=f"{number}/{each.id}") for number, each in pins]
        if not commands:
            return True
        try:
            self._log.take_over()
            if self.read():
                return False
            self._log.append_all(commands)
        except TakenOver:
            return False
        finally:
            self._log.close()
        return True


def printed_text(statement: st.Statement) -> str:
    """A statement without comments, in a normalized form."""
    return print_statement(statement)


def _edited(statement: st.Statement, unused: Iterable[Pin]) -> Pin | None:
    """The pin that an edited statement takes over; none if several INSERT INTO match."""
    slot = _slot(statement)
    found = [each for each in unused if slot is not None and each.slot == slot]
    if not found or (isinstance(statement, st.InsertSelect) and len(found) > 1):
        return None
    return found[-1]


def _slot(statement: st.Statement) -> Slot | None:
    """The object that a statement creates; None if the statement cannot be identified."""
    match statement:
        case st.CreateSource() | st.CreateAsSelect():
            return type(statement), statement.kind, statement.name
        case st.InsertSelect():
            return type(statement), statement.target
        case _:
            return None
