"""The record that all formats encode and decode, and its schemas."""

from dataclasses import dataclass

import orjson

ORDER: dict[str, object] = {
    "id": 4711,
    "customer": "customer-0815",
    "amount": 129.95,
    "paid": True,
    "items": ["keyboard", "mouse", "cable"],
    "address": {"street": "Mill Lane 3", "city": "Streamton", "zip": "12345"},
}

AVRO = orjson.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "paid", "type": "boolean"},
            {"name": "items", "type": {"type": "array", "items": "string"}},
            {
                "name": "address",
                "type": {
                    "type": "record",
                    "name": "Address",
                    "fields": [
                        {"name": "street", "type": "string"},
                        {"name": "city", "type": "string"},
                        {"name": "zip", "type": "string"},
                    ],
                },
            },
        ],
    }
).decode()

JSON_SCHEMA = orjson.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "customer": {"type": "string"},
            "amount": {"type": "number"},
            "paid": {"type": "boolean"},
            "items": {"type": "array", "items": {"type": "string"}},
            "address": {
                "type": "object",
                "properties": {
                    "street": {"type": "string"},
                    "city": {"type": "string"},
                    "zip": {"type": "string"},
                },
                "required": ["street", "city", "zip"],
            },
        },
        "required": ["id", "customer", "amount", "paid", "items", "address"],
    }
).decode()

PROTO = """
syntax = "proto3";
message Order {
  int64 id = 1;
  string customer = 2;
  double amount = 3;
  bool paid = 4;
  repeated string items = 5;
  Address address = 6;
}
message Address {
  string street = 1;
  string city = 2;
  string zip = 3;
}
"""


@dataclass
class Address:
    """The address of an order."""

    street: str
    city: str
    zip: str


@dataclass
class Order:
    """The same record as an object."""

    id: int
    customer: str
    amount: float
    paid: bool
    items: list[str]
    address: Address


def as_object() -> Order:
    """The record as an object of our class."""
    fields = dict(ORDER)
    address = Address(**fields.pop("address"))  # type: ignore[arg-type]
    return Order(address=address, **fields)  # type: ignore[arg-type]


def order_of(fields: dict[str, object], _: object = None) -> Order:
    """Create an order from its fields, as users of confluent-kafka do."""
    address = Address(**fields["address"])  # type: ignore[arg-type]
    return Order(**{**fields, "address": address})  # type: ignore[arg-type]


def fields_of(order: Order, _: object = None) -> dict[str, object]:
    """Return the fields of an order, as users of confluent-kafka do."""
    return {**vars(order), "address": vars(order.address)}
