"""Stack traces in a simulation have our frames, and nothing of the machine."""

import json

from broker import stack_traces
from broker.config import BrokerConfig
from millstream.simulation import Simulation
from millstream.simulation.stack_traces import ROOT


def refused() -> ValueError:
    """An error that passed through Python's library, with one of our own as its cause."""
    try:
        try:
            BrokerConfig.from_properties({"log.segment.bytes": "many"})
        except Exception as error:
            json.JSONDecoder(object_hook=lambda _: 1 / 0).decode("{}")
            raise AssertionError from error
    except ZeroDivisionError as error:
        failed = ValueError("refused")
        failed.__cause__ = error
        return failed
    raise AssertionError


def test_a_simulated_trace_has_our_frames_without_the_folder() -> None:
    error = refused()
    real = stack_traces.format_error(error)
    assert str(ROOT) in real
    assert "json/decoder.py" in real
    with Simulation(seed=1):
        simulated = stack_traces.format_error(error)
    assert stack_traces.format_error(error) == real
    assert str(ROOT) not in simulated
    assert "json/decoder.py" not in simulated
    assert '  File "broker/config.py", line ' in simulated
    assert "ZeroDivisionError: division by zero" in simulated
    assert "direct cause" in simulated
    assert simulated.endswith("ValueError: refused\n")
