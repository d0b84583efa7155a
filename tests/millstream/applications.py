"""Applications that the tests of `millstream run` name on the command line."""

from broker.client.opening import Target
from streams import StreamsApp, StreamsBuilder


def _builder() -> StreamsBuilder:
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    lines.map_values(lambda line: line.upper()).to("loud", key=str, value=str)
    return builder


builder = _builder()
topology = _builder().build()
nothing = "no topology"


def make(application_id: str, broker: Target, state_dir: str, **settings: str) -> StreamsApp:
    """An application that knows its settings better."""
    del settings
    return StreamsApp(
        topology,
        application_id=f"{application_id}-made",
        broker=broker,
        state_dir=state_dir,
        commit_interval_ms=100,
    )


def failing() -> StreamsBuilder:
    """An application that fails at its first record."""
    builder = StreamsBuilder()
    builder.stream("lines", key=str, value=str).foreach(lambda key, line: int(line))
    return builder


def misspelt() -> StreamsBuilder:
    """An application that cannot be built."""
    builder = StreamsBuilder()
    builder.stream("lines").fliter(lambda key, line: True)  # type: ignore[attr-defined]
    return builder
