"""Stock statistics of the last 5 seconds, every second: lowest ask, count, average."""

from typing import Any

from examples.playing import Input, Results, Row, play
from streams import StreamsBuilder, Topology, Windowed, hopping, until_window_closes

SIZE_MS, ADVANCE_MS = 5_000, 1_000


def add(_: str, trade: Row, seen: Row) -> Row:
    """Add one trade."""
    ask = trade["ask"]
    lowest = min(seen.get("lowest", ask), ask)
    return {"lowest": lowest, "count": seen["count"] + 1, "sum": seen["sum"] + ask}


def finish(window: Windowed[str], seen: Row) -> Row:
    """Compute the final statistics."""
    return {
        "from_s": window.start_ms // 1000,
        "lowest": seen["lowest"],
        "count": seen["count"],
        "average": round(seen["sum"] / seen["count"], 2),
    }


def build() -> Topology:
    """Trades in, statistics of each window out when it closes."""
    builder = StreamsBuilder()
    trades = builder.stream("trades", key=str, value=dict[str, Any])
    windows = trades.group_by_key().windowed_by(hopping(SIZE_MS, ADVANCE_MS))
    seen = windows.aggregate(lambda: {"count": 0, "sum": 0}, add, value=dict)
    over = seen.suppress(until_window_closes()).to_stream()
    results = over.map_values(finish, with_key=True).select_key(lambda window, _: window.key)
    results.to("statistics", key=str, value=dict)
    return builder.build()


def main() -> Results:
    """Twenty seconds of a stock whose price rises by 1 every 500 ms."""
    trades = [Input("trades", "MILL", {"ask": 100 + n}, n * 500) for n in range(40)]
    return play(build(), trades, ["statistics"], until=lambda found: len(found) == 15)


if __name__ == "__main__":
    for symbol, row in main():
        print(symbol, *(f"{name} {value}" for name, value in row.items()))
