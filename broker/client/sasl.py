"""The client side of SASL: PLAIN and SCRAM as conversations without I/O.

A conversation is a generator: it yields messages to send and receives the broker's responses.

    SCRAM    client                                 broker
             n,,n=user,r=nonce                  ->
                                                <-  r=nonce+more,s=salt,i=iterations
             c=biws,r=nonce+more,p=proof        ->
                                                <-  v=signature (proves that it knows the password)
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator

from broker.errors import AuthenticationFailed

Conversation = Generator[bytes, bytes, None]

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN = 4096
ITERATIONS_MAX = 10_000_000  # a malicious broker must not make us hash forever


def converse(
    mechanism: str,
    username: str,
    password: str,
    *,
    nonce: Callable[[], str] = secrets.token_urlsafe,
) -> Conversation:
    """The conversation of a mechanism."""
    if mechanism == "PLAIN":
        return plain(username, password)
    return scram(HASHES[mechanism], username, password, nonce=nonce())


def plain(username: str, password: str) -> Conversation:
    """RFC 4616: everything in one message."""
    yield f"\0{username}\0{password}".encode()


def scram(hash_name: str, username: str, password: str, *, nonce: str) -> Conversation:
    """RFC 5802 without channel binding; the broker's signature is checked at the end."""
    name = username.replace("=", "=3D").replace(",", "=2C")
    client_first = f"n={name},r={nonce}"
    server_first = yield f"n,,{client_first}".encode()
    fields = _fields(server_first)
    if not fields["r"].startswith(nonce) or len(fields["r"]) == len(nonce):
        raise AuthenticationFailed("the broker's SCRAM nonce does not continue ours")
    iterations = _iterations(fields["i"])
    client_final = f"c=biws,r={fields['r']}"
    signed = f"{client_first},{server_first.decode()},{client_final}".encode()

    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), _decode(fields["s"]), iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), signed, hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = yield f"{client_final},p={base64.b64encode(proof).decode()}".encode()

    server_key = hmac.digest(salted, b"Server Key", hash_name)
    expected = hmac.digest(server_key, signed, hash_name)
    if not hmac.compare_digest(_decode(_fields(server_final)["v"]), expected):
        raise AuthenticationFailed(
            "the broker's SCRAM signature is invalid: it does not have the password",
            hint="check that this is the broker you mean to reach",
        )


class _Fields(dict[str, str]):
    """The attributes of a SCRAM message; a missing attribute is an error of the broker."""

    def __missing__(self, name: str) -> str:
        raise AuthenticationFailed(f'the broker\'s SCRAM message has no attribute "{name}"')


def _fields(message: bytes) -> _Fields:
    try:
        text = message.decode()
    except UnicodeDecodeError as error:
        raise AuthenticationFailed("the broker's SCRAM message is not text") from error
    found = _Fields(part.split("=", 1) for part in text.split(",") if "=" in part)
    if "e" in found:
        raise AuthenticationFailed(
            f"the broker refused the SCRAM exchange: {found['e']}",
            hint="check sasl_username and sasl_password",
        )
    return found


def _iterations(text: str) -> int:
    if not text.isdecimal() or not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise AuthenticationFailed(f'the broker requires "{text[:20]}" SCRAM iterations')
    return int(text)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise AuthenticationFailed("the broker's SCRAM message is not base64") from error
