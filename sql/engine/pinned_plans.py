"""Pinned plans: the config topic of headless servers, which have no command topic.

`_confluent-ksql-<service id>configs` has one partition and is compacted. A record is a command as
in the command topic (command_log.py): a statement of the file, its plan and the settings that its
query keeps. The key is the number of the statement and the id of its command, as in
"3/stream/`BIG`/create"; the number is the one in the id of its query. A plan has one more member:

    "basis": {...}     the sources, types and settings of SET that the plan was made of

Statements are found again by what they say, not by their place, spaces or comments. A statement
that was edited takes over the pin of the one that made the same stream or table before. Pins of
statements that were removed from the file stay: a statement that comes back continues.

Several servers may start at once: a server writes only if no other has written since it read.
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
    """What a statement of the file does, and the number in the id of its query."""

    number: int
    command: Command
    printed: str
    slot: Slot | None


@dataclass(frozen=True, slots=True)
class PinMatch:
    """The pin of a statement: its own, or the one of the statement that it was before an edit."""

    pin: Pin
    is_same: bool


class PinnedPlans:
    """The pins of a service; one thread uses it at a time."""

    def __init__(self, target: Target, topic: str) -> None:
        self._log = CommandLog(target, topic, cleanup_policy="compact")
        self._pins: dict[int, Pin] = {}

    def open(self) -> None:
        """Create the topic if there is none, and read it."""
        self._log.open()
        try:
            self.read()
        finally:
            self._log.close()

    def read(self) -> bool:
        """Read what other servers have written; whether there was something."""
        found = False
        for logged in self._log.unread():
            pin = self._pin(logged.command, logged.offset)
            self._pins[pin.number] = pin
            found = True
        return found

    def _pin(self, command: Command, offset: int) -> Pin:
        number, _, command_id = command.id.partition("/")
        if not number.isdecimal() or command.plan is None:
            raise DamagedCommand(
                f'offset {offset} of topic "{self._log.topic}" is not a pinned plan',
                hint="restore the topic from a backup, or give the service another ksql.service.id",
            )
        try:
            [parsed] = parse(command.statement)
            printed, slot = printed_text(parsed.statement), _slot(parsed.statement)
        except (SqlError, ValueError):  # of another version: only an equal text is the same
            printed, slot = command.statement, None
        return Pin(int(number), replace(command, id=command_id), printed, slot)

    @property
    def is_empty(self) -> bool:
        """Whether no plan was ever pinned."""
        return not self._pins

    @property
    def next_number(self) -> int:
        """The number of the next new statement; those of pins are never used again."""
        return max(self._pins, default=-1) + 1

    def matched(self, statements: Sequence[st.Statement]) -> list[PinMatch | None]:
        """The pin of each statement of a file, in the order of the file."""
        unused = dict(sorted(self._pins.items()))
        found: list[PinMatch | None] = []
        for statement in statements:
            printed = printed_text(statement)
            same = next((each for each in unused.values() if each.printed == printed), None)
            if same is not None:
                del unused[same.number]
            found.append(None if same is None else PinMatch(same, is_same=True))
        for place, statement in enumerate(statements):
            if found[place] is None:
                before = _edited(statement, unused.values())
                if before is not None:
                    del unused[before.number]
                    found[place] = PinMatch(before, is_same=False)
        return found

    def write(self, pins: Iterable[tuple[int, Command]]) -> bool:
        """Write pins, all or none; False: another server has written, read and plan again."""
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
    """A statement without spaces and comments of its own."""
    return print_statement(statement)


def _edited(statement: st.Statement, unused: Iterable[Pin]) -> Pin | None:
    """The pin that an edited statement takes over; none if several INSERT INTO could be it."""
    slot = _slot(statement)
    found = [each for each in unused if slot is not None and each.slot == slot]
    if not found or (isinstance(statement, st.InsertSelect) and len(found) > 1):
        return None
    return found[-1]


def _slot(statement: st.Statement) -> Slot | None:
    """What a statement creates; None of statements that keep nothing from one edit to the next."""
    match statement:
        case st.CreateSource() | st.CreateAsSelect():
            return type(statement), statement.kind, statement.name
        case st.InsertSelect():
            return type(statement), statement.target
        case _:
            return None
