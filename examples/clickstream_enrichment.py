"""Clickstream: enriches page views with user profiles and with the preceding searches."""

from datetime import timedelta
from typing import Any

from examples.playing import Input, Results, Row, play
from streams import StreamsBuilder, Topology, join_within

RECORDS = (
    Input("profiles", "alice", {"name": "Alice"}),
    Input("searches", "alice", {"words": "water wheel"}, 50_000),
    Input("searches", "bob", {"words": "flour"}, 55_000),
    Input("views", "alice", {"page": "/wheels"}, 60_000),
    Input("views", "bob", {"page": "/shop"}, 61_000),
    Input("views", "alice", {"page": "/stones"}, 200_000),
)


def with_profile(view: Row, profile: Row | None) -> Row:
    """Add the name of the user, if it is known."""
    return {"page": view["page"], "name": profile["name"] if profile else "anonymous"}


def with_search(view: Row, search: Row) -> Row:
    """Add the search that preceded the view."""
    return {**view, "searched": search["words"]}


def build() -> Topology:
    """Views, profiles and searches in, visits out."""
    builder = StreamsBuilder()
    profiles = builder.table("profiles", key=str, value=dict[str, Any])
    views = builder.stream("views", key=str, value=dict[str, Any])
    searches = builder.stream("searches", key=str, value=dict[str, Any])
    known = views.left_join(profiles, with_profile)
    minute_before = join_within(before=timedelta(minutes=1), after=0)
    visits = known.join(searches, with_search, minute_before, value=dict)
    visits.to("visits", key=str, value=dict)
    return builder.build()


def main() -> Results:
    """Both users searched first; Alice's last view is more than a minute after her search."""
    return play(build(), RECORDS, ["visits"], until=lambda found: len(found) == 2)


if __name__ == "__main__":
    for user, visit in main():
        print(f"{user}: {visit}")
