"""One small REST layer for every service: a service declares its routes and its error responses.

    ROUTES = (
        Route("GET", "/orders/{name}", show),
        Route("POST", "/orders", create, body=Body(bytes_max=1_000_000)),
    )
    service = RestService(ROUTES, error_reply, RestRequest)
    HttpServer(RestApplication(service, orders), listen="127.0.0.1:8090", name="orders")

A handler is called with the object that the application serves and with the request. Its result is
sent as JSON, unless it is a Reply or a StreamedReply.
"""

from broker.rest.application import RestApplication
from broker.rest.errors import HttpError, InvalidJson
from broker.rest.http_server import HttpServer
from broker.rest.own_version import own_version
from broker.rest.reply import Json, PlainText, Reply
from broker.rest.request import Query, RestRequest
from broker.rest.request_counts import RequestCounts
from broker.rest.routes import Body, Route
from broker.rest.service import RestService
from broker.rest.streamed_reply import StreamedReply

__all__ = [
    "Body",
    "HttpError",
    "HttpServer",
    "InvalidJson",
    "Json",
    "PlainText",
    "Query",
    "Reply",
    "RequestCounts",
    "RestApplication",
    "RestRequest",
    "RestService",
    "Route",
    "StreamedReply",
    "own_version",
]
