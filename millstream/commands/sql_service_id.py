"""The service id of a SQL command, which must not equal that of a server by accident.

Engines with the same ksql.service.id are nodes of one service: they share statements and queries. A
command with the server's default id would run the server's queries a second time, and the server
would keep the queries of the command. Therefore a command has its own id:

`--service-id ID`, or `-s ksql.service.id=ID`   as given; refused while a running engine uses it
`-f job.sql`                    from the file's path: the next run continues the queries
`--bounded` with other input    from the statements: the next run processes new records
`-e`, or statements on stdin    new and temporary: queries and topics are deleted at the end
interactive statements          from the user's name: the next shell continues the queries
"""

import getpass
import hashlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

SETTING = "ksql.service.id"
PREFIX = "cli_"
NAME_CHARACTERS_MAX = 40
DIGEST_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class ServiceId:
    """A service id, and whether it is temporary."""

    text: str
    is_temporary: bool = False
    # Whether the user has specified it; then other engines may use it, too.
    is_given: bool = False


def service_id_of(
    given: str | None, *, file: Path | None, text: str | None, bounded: bool
) -> ServiceId:
    """The id of a command that runs an engine on a cluster; `text` is None at a prompt."""
    if given is not None:
        return ServiceId(given, is_given=True)
    if file is not None:
        return ServiceId(_named(file.stem, str(file.resolve())))
    if text is None:
        return ServiceId(_named(_user()))
    if bounded:
        return ServiceId(_named("bounded", text))
    return ServiceId(_named("once", secrets.token_hex(8)), is_temporary=True)


def _named(name: str, unique: str | None = None) -> str:
    plain = re.sub("[^A-Za-z0-9_-]", "_", name)[:NAME_CHARACTERS_MAX]
    if unique is None:
        return f"{PREFIX}{plain}_"
    digest = hashlib.sha256(unique.encode()).hexdigest()[:DIGEST_CHARACTERS]
    return f"{PREFIX}{plain}_{digest}_"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "user"
