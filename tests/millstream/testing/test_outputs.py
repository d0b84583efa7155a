"""Outputs: what is compared, and how differences are shown."""

from millstream.simulation.scenario import Fault, Scenario
from millstream.testing import stream, table
from millstream.testing.report import report

A, B = b"a", b"b"


def test_a_table_has_the_last_value_of_each_key() -> None:
    stored = [(A, b"1"), (B, b"2"), (A, b"3"), (B, None)]
    assert table(key=str, value=str).result("totals", stored) == {"a": "3"}


def test_a_stream_has_all_values_of_each_key() -> None:
    stored = [(A, b"1"), (B, None), (A, b"3")]
    assert stream(key=str, value=str).result("alarms", stored) == {"a": ["1", "3"], "b": [None]}


def test_keys_may_be_json() -> None:
    assert table(key=dict, value=str).result("t", [(b'{"id":1}', b"x")]) == {"{'id': 1}": "x"}


def test_the_order_of_a_stream_may_be_left_out() -> None:
    one, other = {"a": [{"n": 1}, {"n": 2}]}, {"a": [{"n": 2}, {"n": 1}]}
    assert list(stream().differences("t", one, other)) == [
        """output "t", key 'a': expected [{'n': 1}, {'n': 2}], found [{'n': 2}, {'n': 1}]"""
    ]
    assert not list(stream(ordered=False).differences("t", one, other))
    assert list(stream(ordered=False).differences("t", one, {"a": [{"n": 1}]}))


def test_missing_and_additional_keys_differ() -> None:
    assert list(table().differences("t", {"a": 1, "b": 2}, {"b": 2, "c": 3})) == [
        """output "t", key 'a': expected 1, found nothing""",
        """output "t", key 'c': expected nothing, found 3""",
    ]


def test_a_report_has_what_is_needed_to_go_on() -> None:
    whole = Scenario(7, 1_000, faults=(Fault(5, "kill", "application", 50), Fault(9, "stop")))
    events = [
        "0.1  sender  sends orders[0]",
        "0.2  sender  sends orders[1], orders[2]",
        "0.3  broker  logs INFO: something",
        "0.4  application  starts",
    ]
    text = report(whole, whole.without_fault(1), ["one", "two"], events, "pytest --seed {seed}")
    assert (
        text
        == """\
seed 7: the result is not that of the run without faults
  one
  two

faults of this seed (times count from the first input record):
  0.005 s: application is killed, and restarted after 50 ms
  0.009 s: broker is stopped, and restarted after 0 ms
faults that are enough for a difference:
  0.005 s: application is killed, and restarted after 50 ms

to run this seed again: pytest --seed 7

what happened with these faults, the last events (virtual seconds, process, event):
  0.1  sender  sends orders[0] ... orders[2]
  0.4  application  starts"""
    )


def test_long_lists_are_cut() -> None:
    lines = [f"difference {number}" for number in range(30)]
    text = report(Scenario(1, 1_000), Scenario(1, 1_000), lines, [], "")
    assert "difference 9\n  ... and 20 more" in text
