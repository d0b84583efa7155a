"""Tables joined by key and by foreign key: results follow every change of either side."""

from typing import Any

from examples.playing import Input, Results, Row, play
from streams import StreamsBuilder, Topology

RECORDS = (
    Input("prices", "flour", {"price": 2}),
    Input("stocks", "flour", {"sacks": 70}),
    Input("orders", "order-1", {"product": "flour", "sacks": 3}),
    Input("orders", "order-2", {"product": "bran", "sacks": 1}),
    Input("prices", "flour", {"price": 3}, 1000),
    Input("prices", "bran", {"price": 1}, 1000),
)


def offer(price: Row, stock: Row) -> Row:
    """A product with price and stock."""
    return {**price, **stock}


def invoice(order: Row, price: Row) -> Row:
    """The amount to pay."""
    return {"product": order["product"], "pays": order["sacks"] * price["price"]}


def build() -> Topology:
    """Offers are prices with stocks; invoices are orders with the price of their product."""
    builder = StreamsBuilder()
    prices = builder.table("prices", key=str, value=dict[str, Any])
    stocks = builder.table("stocks", key=str, value=dict[str, Any])
    orders = builder.table("orders", key=str, value=dict[str, Any])
    offers = prices.join(stocks, offer)
    invoices = orders.join(prices, invoice, foreign_key=lambda order: order["product"])
    offers.to_stream().to("offers", key=str, value=dict)
    invoices.to_stream().to("invoices", key=str, value=dict)
    return builder.build()


def is_complete(found: Results) -> bool:
    """Whether all results have the new prices."""
    newest = dict(found)
    return len(newest) == 3 and newest["flour"]["price"] == newest["order-1"]["pays"] / 3 == 3


def main() -> dict[str, Row]:
    """The newest offer and invoices, after the price of flour has gone up."""
    return dict(play(build(), RECORDS, ["offers", "invoices"], until=is_complete))


if __name__ == "__main__":
    for key, row in main().items():
        print(f"{key}: {row}")
