"""ConnectRequest: one request, parsed and limited in size.

Values of settings may be numbers and booleans: they are converted to strings unchanged, 1.50 as
"1.50". A boolean in the query is true for "true" in any case, and false for everything else.
"""

import json
from dataclasses import dataclass

from broker.rest import Body, HttpError, InvalidJson, RestRequest, Route
from connect.config.connector_file import INITIAL_STATES
from connect.errors import BadRequest
from connect.herder import Herder
from connect.herder.offset_changes import WrittenOffset
from connect.herder.validation import NullableConfig
from connect.state.task_state import TargetState, TaskId

INT_DIGITS_MAX = 10
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
BODY_BYTES_MAX = 1_000_000  # below the default limit of brokers for one batch
# Requests without a body may have any type: several consist only of a method and a path.
JSON_BODY = Body(BODY_BYTES_MAX, frozenset({"application/json"}), empty_of_any_type=True)


class _Number(str):
    """A number in its written form."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """The body of POST /connectors."""

    name: str
    config: NullableConfig
    initial_state: TargetState | None


class ConnectRequest(RestRequest):
    """One request: the variables of its path, its query, its body, its URL."""

    __slots__ = ()

    # --- path and query ---------------------------------------------------------------------

    @property
    def connector(self) -> str:
        """The connector in the path, decoded; it may contain slashes."""
        return self.variable("connector")

    @property
    def name(self) -> str:
        """The plugin or logger in the path, decoded."""
        return self.variable("name")

    @property
    def task(self) -> TaskId:
        """The task in the path; 404 if it is not a number."""
        text = self.variable("task")
        digits = text[1:] if text[:1] in ("-", "+") else text
        right = digits.isascii() and digits.isdecimal() and len(digits) <= INT_DIGITS_MAX
        if not right or abs(int(text)) > INT_MAX:
            raise HttpError(404)
        return TaskId(self.connector, int(text))

    # --- body -------------------------------------------------------------------------------

    def config(self) -> NullableConfig:
        """The body as settings; null is kept: the herder refuses it, or removes the setting."""
        return _config(self._object(), "the body")

    def create_request(self) -> CreateRequest:
        """The body of POST /connectors."""
        content = _known(self._object(), "config", "name", "initial_state")
        name, state = content.get("name"), content.get("initial_state")
        config = content.get("config")
        if config is None:
            raise BadRequest('the body has no "config"')
        initial_state = None if state is None else _text(state, '"initial_state"').upper()
        if initial_state is not None and initial_state not in INITIAL_STATES:
            choices = ", ".join(INITIAL_STATES)
            raise BadRequest(f'"initial_state" is "{state}", it must be one of {choices}')
        return CreateRequest(
            "" if name is None else _text(name, '"name"').strip(),
            _config(config, '"config"'),
            None if initial_state is None else INITIAL_STATES[initial_state],
        )

    def offsets(self) -> list[WrittenOffset]:
        """The body as offsets."""
        content = _known(self._object(), "offsets").get("offsets")
        if content is None:
            return []
        if not isinstance(content, list):
            raise _wrong('"offsets"', "a list")
        found = []
        for each in content:
            entry = _known(_mapping(each, 'an entry of "offsets"'), "partition", "offset")
            found.append(
                WrittenOffset(
                    _values(entry.get("partition"), '"partition"'),
                    _values(entry.get("offset"), '"offset"'),
                )
            )
        return found

    def _object(self) -> dict[str, object]:
        """The body, which must be a JSON object."""
        if not self.body.strip():
            raise BadRequest("the request has no body, it must be a JSON object")
        self.json_object()  # refuses invalid JSON strictly; json keeps the written form of numbers
        try:
            content = json.loads(self.body, parse_int=_Number, parse_float=_Number)
        except (ValueError, RecursionError) as error:
            raise InvalidJson(str(error)) from error
        return _mapping(content, "the body")


# A row of the routes of Kafka Connect's REST API.
ConnectRoute = Route[Herder, ConnectRequest]


def _config(value: object, what: str) -> NullableConfig:
    return {
        name: None if each is None else _text(each, f'setting "{name}"')
        for name, each in _mapping(value, what).items()
    }


def _values(value: object, what: str) -> dict[str, object] | None:
    if value is None:
        return None
    return {name: _value(each) for name, each in _mapping(value, what).items()}


def _value(value: object) -> object:
    """A value of an offset: numbers are numbers there, as large as the records can hold."""
    if not isinstance(value, _Number):
        return value
    number = json.loads(str(value))
    if not -LONG_MAX <= number <= LONG_MAX:
        raise BadRequest(f"the number {value[:40]} is too large")
    return number


def _text(value: object, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise _wrong(what, "a string, a number or a boolean")
    return str(value)


def _mapping(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _wrong(what, "a JSON object")
    return value


def _known(content: dict[str, object], *names: str) -> dict[str, object]:
    for name in content:
        if name not in names:
            listed = ", ".join(f'"{each}"' for each in names)
            raise BadRequest(f'Unrecognized field "{name}", the fields are {listed}')
    return content


def _wrong(what: str, kind: str) -> BadRequest:
    return BadRequest(f"{what} must be {kind}")
