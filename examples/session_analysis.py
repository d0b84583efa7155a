"""Session windows: the number of pages of each visit, emitted once, when the visit is over."""

from datetime import timedelta
from typing import Any

from examples.playing import Input, Results, Row, play
from streams import StreamsBuilder, Topology, Windowed, session, until_window_closes

MINUTE_MS = 60_000
# Bob's last view comes two hours later: it closes all visits before it.
VIEWS = (("alice", 0), ("alice", 10), ("bob", 12), ("alice", 25), ("alice", 90), ("bob", 210))


def visit(window: Windowed[str], pages: int) -> Row:
    """A visit, when it is over."""
    return {"pages": pages, "minutes": (window.end_ms - window.start_ms) // MINUTE_MS}


def build() -> Topology:
    """Views in, finished visits out."""
    builder = StreamsBuilder()
    views = builder.stream("views", key=str, value=dict[str, Any])
    pages = views.group_by_key().windowed_by(session(timedelta(minutes=30))).count()
    over = pages.suppress(until_window_closes()).to_stream()
    visits = over.map_values(visit, with_key=True).select_key(lambda window, _: window.key)
    visits.to("visits", key=str, value=dict)
    return builder.build()


def main() -> Results:
    """The three visits that are over; the fourth is not."""
    views = [Input("views", user, {"page": "/"}, minute * MINUTE_MS) for user, minute in VIEWS]
    return play(build(), views, ["visits"], until=lambda found: len(found) == 3)


if __name__ == "__main__":
    for user, row in main():
        print(f"{user} looked at {row['pages']} pages in {row['minutes']} minutes")
