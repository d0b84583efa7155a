"""Quickstarts: predefined kinds of records, with the names and fields of Confluent's.

Unlike there, time fields have the record's own timestamp, so that windows over them are meaningful.
"""

from dataclasses import dataclass

from connect.connectors.datagen.properties import ARG_PROPERTIES

_REGISTERED = {"min": 1_487_715_775_521, "max": 1_519_273_364_600}
_BROWSERS = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36",
    "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://www.example.com/bot.html)",
]
_ADDRESSES = [
    "111.145.8.144",
    "111.168.57.122",
    "111.203.236.146",
    "111.245.174.248",
    "111.90.225.227",
    "122.145.8.244",
    "122.152.45.245",
    "122.168.57.222",
    "122.245.174.122",
    "222.203.236.146",
]
_PAGES = [
    "GET /index.html HTTP/1.1",
    "GET /site/login.html HTTP/1.1",
    "GET /site/user_status.html HTTP/1.1",
    "GET /images/track.png HTTP/1.1",
    "GET /images/logo-small.png HTTP/1.1",
]


@dataclass(frozen=True, slots=True)
class Quickstart:
    """The Avro schema of one kind of record, and its key field."""

    schema: dict[str, object]
    key_field: str


def _type(name: str, **properties: object) -> dict[str, object]:
    return {"type": name, ARG_PROPERTIES: properties}


def _record(name: str, **fields: object) -> dict[str, object]:
    entries = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": entries}


def _numbered(prefix: str, count: int) -> dict[str, object]:
    return _type("string", numbered={"prefix": prefix, "count": count})


def _range(name: str, low: float, end: float) -> dict[str, object]:
    return _type(name, range={"min": low, "max": end})


_TIME = _type("long", time=True)
_USERS = _numbered("User_", 9)

QUICKSTARTS = {
    "users": Quickstart(
        _record(
            "ksql.users",
            registertime=_type("long", range=_REGISTERED),
            userid=_USERS,
            regionid=_numbered("Region_", 9),
            gender=_type("string", options=["MALE", "FEMALE", "OTHER"]),
        ),
        key_field="userid",
    ),
    "orders": Quickstart(
        _record(
            "ksql.orders",
            ordertime=_TIME,
            orderid=_type("int", iteration={"start": 0}),
            itemid=_numbered("Item_", 999),
            orderunits=_range("double", 0.1, 10.0),
            address=_record(
                "address",
                city=_numbered("City_", 99),
                state=_numbered("State_", 99),
                zipcode=_range("long", 10_000, 99_999),
            ),
        ),
        key_field="orderid",
    ),
    "pageviews": Quickstart(
        _record("ksql.pageviews", viewtime=_TIME, userid=_USERS, pageid=_numbered("Page_", 99)),
        key_field="viewtime",
    ),
    "clickstream": Quickstart(
        _record(
            "ksql.clickstream",
            ip=_type("string", options=_ADDRESSES),
            userid=_range("int", 1, 40),
            remote_user=_type("string", options=["-"]),
            time=_type("string", time=True),
            _time=_TIME,
            request=_type("string", options=_PAGES),
            status=_type("string", options=["200", "302", "404", "405", "406", "407"]),
            bytes=_type("string", options=["278", "1289", "2048", "4006", "4096", "14096"]),
            referrer=_type("string", options=["-"]),
            agent=_type("string", options=_BROWSERS),
        ),
        key_field="ip",
    ),
    "stock_trades": Quickstart(
        _record(
            "ksql.StockTrade",
            side=_type("string", options=["BUY", "SELL"]),
            quantity=_range("int", 1, 5_000),
            symbol=_type(
                "string", options=["ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"]
            ),
            price=_range("int", 5, 1_000),
            account=_type("string", options=["ABC123", "LMN456", "XYZ789"]),
            userid=_USERS,
        ),
        key_field="symbol",
    ),
}
