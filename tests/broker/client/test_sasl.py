"""Authentication: SCRAM as the RFC has it, lying brokers, TLS with and without trust."""

import base64
import datetime
import hashlib
import hmac
import ssl
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from broker.client import producer
from broker.client.cluster import Cluster
from broker.client.config import NetworkConfig
from broker.client.network import NetworkTransport
from broker.client.sasl import plain, scram
from broker.errors import AuthenticationFailed, ClientError, ConfigError
from broker.protocol.frame import Request
from broker.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse
from broker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.broker.client.fake_broker import FakeBroker, all_versions
from tests.support.apache_kafka import ApacheKafka
from tests.support.peer import PeerMissing, skip_without_peer
from tests.support.ports import held_ports

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_speaks_the_example_of_the_rfc() -> None:
    talk = scram("sha256", "user", "pencil", nonce=NONCE)
    assert next(talk) == b"n,,n=user,r=" + NONCE.encode()
    assert talk.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        talk.send(SERVER_FINAL)


@pytest.mark.parametrize(
    ("server_first", "message"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=" + NONCE.encode() + b",s=W22Z,i=4096", "nonce"),
        (b"r=" + NONCE.encode() + b"x,s=W22Z,i=1", "iterations"),
        (b"r=" + NONCE.encode() + b"x,s=W22Z,i=99999999999", "iterations"),
        (b"r=" + NONCE.encode() + b"x,s=W22Z,i=-4096", "iterations"),
        (b"r=" + NONCE.encode() + b"x,s=???,i=4096", "base64"),
        (b"r=" + NONCE.encode() + b"x,i=4096", 'no attribute "s"'),
        (b"e=unknown-user", "refused the SCRAM exchange: unknown-user"),
        (b"\xff\xfe", "not text"),
        (b"", 'no attribute "r"'),
    ],
)
def test_a_lying_server_is_found_out_at_its_first_message(
    server_first: bytes, message: str
) -> None:
    talk = scram("sha256", "user", "pencil", nonce=NONCE)
    next(talk)
    with pytest.raises(AuthenticationFailed, match=message):
        talk.send(server_first)


@pytest.mark.parametrize("server_final", [b"v=" + base64.b64encode(b"x" * 32), b"v=AAAA", b"x=1"])
def test_a_server_that_does_not_know_the_password_is_found_out(server_final: bytes) -> None:
    talk = scram("sha256", "user", "pencil", nonce=NONCE)
    next(talk)
    talk.send(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed):
        talk.send(server_final)


def test_names_with_characters_of_the_syntax_are_escaped() -> None:
    assert next(scram("sha512", "a=b,c", "p", nonce="N")) == b"n,,n=a=3Db=2Cc,r=N"


def test_plain_sends_name_and_password() -> None:
    assert list(plain("user", "pencil")) == [b"\0user\0pencil"]


class SaslBroker:
    """The broker's side of PLAIN and SCRAM, for one user "user" with the password "pencil"."""

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism
        self._first = ""
        self._nonce = ""

    def __call__(self, request: Request) -> object:
        body = request.body
        if isinstance(body, ApiVersionsRequest):
            return all_versions()
        if isinstance(body, SaslHandshakeRequest):
            code = 0 if body.mechanism == self.mechanism else 33
            return SaslHandshakeResponse(code, [self.mechanism])
        if isinstance(body, SaslAuthenticateRequest):
            return self._authenticate(body.auth_bytes)
        assert isinstance(body, MetadataRequest)
        return MetadataResponse(cluster_id="inside")

    def _authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        if self.mechanism == "PLAIN":
            return self._verdict(token == b"\0user\0pencil", b"")
        text = token.decode()
        if text.startswith("n,,"):
            self._first = text[3:]
            nonce = dict(part.split("=", 1) for part in self._first.split(","))["r"]
            self._nonce = f"r={nonce}more,s={base64.b64encode(b'salt').decode()},i=4096"
            return SaslAuthenticateResponse(auth_bytes=self._nonce.encode())
        without_proof, proof = text.rsplit(",p=", 1)
        signed = f"{self._first},{self._nonce},{without_proof}".encode()
        name = self.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        salted = hashlib.pbkdf2_hmac(name, b"pencil", b"salt", 4096)
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
        return self._verdict(base64.b64decode(proof) == expected, b"v=" + base64.b64encode(server))

    def _verdict(self, right: bool, answer: bytes) -> SaslAuthenticateResponse:
        if right:
            return SaslAuthenticateResponse(auth_bytes=answer)
        return SaslAuthenticateResponse(58, "wrong password")


def ask(address: str, timeout_ms: int = 5_000, /, **settings: object) -> str | None:
    """The cluster id, after everything it takes to get in."""
    config = NetworkConfig(address, **settings)  # type: ignore[arg-type]
    cluster = Cluster(NetworkTransport(config))
    try:
        cluster.refresh(timeout_ms=timeout_ms)
        return cluster.cluster_id
    finally:
        cluster.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_right_password_gets_in_and_a_wrong_one_does_not(mechanism: str) -> None:
    settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    with FakeBroker(SaslBroker(mechanism)) as fake:
        right = {"sasl_username": "user", "sasl_password": "pencil"}
        assert ask(fake.address, **settings, **right) == "inside"
        wrong = {"sasl_username": "user", "sasl_password": "pen"}
        with pytest.raises(AuthenticationFailed, match="wrong password"):
            ask(fake.address, **settings, **wrong)


def test_a_mechanism_the_broker_does_not_offer_is_told_with_those_it_does() -> None:
    with FakeBroker(SaslBroker("SCRAM-SHA-512")) as fake:
        with pytest.raises(AuthenticationFailed, match="mechanism PLAIN") as failed:
            ask(fake.address, security_protocol="SASL_PLAINTEXT", sasl_username="user")
        assert "SCRAM-SHA-512" in failed.value.hint


class Authority:
    """A certificate authority for one test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self.file = folder / "authority.pem"
        made = self._certificate(self._name, self._key.public_key(), is_authority=True)
        self.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, address: str = "127.0.0.1") -> tuple[str, str]:
        """Paths of a certificate for an address and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._certificate(subject, key.public_key(), address=address)
        certificate, private = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return str(certificate), str(private)

    def _certificate(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        address: str = "",
        is_authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if address:
            names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def server_context(authority: Authority, *, address: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("broker", address=address))
    return context


@pytest.fixture
def tls_broker(authority: Authority) -> Iterator[Callable[..., FakeBroker]]:
    """Makes brokers that want TLS."""
    made: list[FakeBroker] = []

    def make(context: ssl.SSLContext, mechanism: str = "PLAIN") -> FakeBroker:
        fake = FakeBroker(SaslBroker(mechanism), tls=context).__enter__()
        made.append(fake)
        return fake

    yield make
    for fake in made:
        fake.__exit__(None, None, None)


def test_tls_with_sasl_gets_in(authority: Authority, tls_broker: Callable[..., FakeBroker]) -> None:
    fake = tls_broker(server_context(authority), "SCRAM-SHA-256")
    found = ask(
        fake.address,
        security_protocol="SASL_SSL",
        ssl_ca_location=str(authority.file),
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="user",
        sasl_password="pencil",
    )
    assert found == "inside"


def test_a_broker_that_wants_a_certificate_gets_ours(
    authority: Authority, tls_broker: Callable[..., FakeBroker]
) -> None:
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    fake = tls_broker(context)
    settings = {"security_protocol": "SSL", "ssl_ca_location": str(authority.file)}
    certificate, key = authority.issue("client")
    mine = {"ssl_certificate_location": certificate, "ssl_key_location": key}
    assert ask(fake.address, **settings, **mine) == "inside"
    with pytest.raises(AuthenticationFailed, match="TLS"):
        ask(fake.address, **settings)


def test_a_broker_that_nobody_vouches_for_is_refused(
    authority: Authority, tls_broker: Callable[..., FakeBroker]
) -> None:
    fake = tls_broker(server_context(authority))
    with pytest.raises(AuthenticationFailed, match="certificate verify failed"):
        ask(fake.address, security_protocol="SSL")


def test_the_host_name_is_checked_unless_switched_off(
    authority: Authority, tls_broker: Callable[..., FakeBroker]
) -> None:
    fake = tls_broker(server_context(authority, address="192.0.2.1"))
    settings = {"security_protocol": "SSL", "ssl_ca_location": str(authority.file)}
    with pytest.raises(AuthenticationFailed, match="IP address mismatch"):
        ask(fake.address, **settings)
    assert ask(fake.address, **settings, ssl_endpoint_identification_algorithm="") == "inside"


def test_speaking_tls_to_a_plain_port_says_what_to_check() -> None:
    with FakeBroker(SaslBroker("PLAIN")) as fake, pytest.raises(ClientError) as failed:
        ask(fake.address, 200, security_protocol="SSL")
    assert "security_protocol" in failed.value.hint


def test_files_that_are_not_there_are_named_when_the_client_is_made(tmp_path: Path) -> None:
    config = NetworkConfig(
        "localhost:9092", security_protocol="SSL", ssl_ca_location=str(tmp_path / "none.pem")
    )
    with pytest.raises(ConfigError, match="cannot load the TLS files"):
        NetworkTransport(config)


@pytest.fixture(scope="module")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Authority]]:
    """A real Kafka with a listener that wants TLS and SASL, and who vouches for it."""
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder)
    certificate, key = authority.issue("kafka")
    both = folder / "keystore.pem"
    both.write_text(Path(key).read_text() + Path(certificate).read_text())
    try:
        kafka = ApacheKafka(folder / "kafka", settings=SECURED)
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")
    address = f"SECURED://127.0.0.1:{held_ports(1)[0]}"
    listeners = dict(line.split("=", 1) for line in kafka._properties().splitlines())
    kafka._settings.update(
        {
            "listeners": f"{listeners['listeners']},{address}",
            "advertised.listeners": f"{listeners['advertised.listeners']},{address}",
            "ssl.keystore.location": str(both),
        }
    )
    with kafka:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):  # one request takes one of a user
            kafka.run_tool(
                "kafka-configs",
                *("--bootstrap-server", kafka.bootstrap),
                *("--alter", "--entity-type", "users", "--entity-name", "user"),
                *("--add-config", f"{mechanism}=[iterations=4096,password=pencil]"),
            )
        yield address.removeprefix("SECURED://"), authority


JAAS = "org.apache.kafka.common.security"
SECURED = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.secured.plain.sasl.jaas.config": (
        f'{JAAS}.plain.PlainLoginModule required user_user="pencil";'
    ),
    "listener.name.secured.scram-sha-256.sasl.jaas.config": (
        f"{JAAS}.scram.ScramLoginModule required;"
    ),
    "listener.name.secured.scram-sha-512.sasl.jaas.config": (
        f"{JAAS}.scram.ScramLoginModule required;"
    ),
    "ssl.keystore.type": "PEM",
}


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_real_kafka_lets_us_in_with_the_right_password_only(
    secured_kafka: tuple[str, Authority], mechanism: str
) -> None:
    address, authority = secured_kafka
    settings = {
        "security_protocol": "SASL_SSL",
        "ssl_ca_location": str(authority.file),
        "sasl_mechanism": mechanism,
        "sasl_username": "user",
    }
    with producer(address, sasl_password="pencil", **settings) as out:
        sent = [out.send("secured", b"x" * 1_000) for _ in range(200)]
        out.flush(30_000)
        assert all(each.exception(0) is None for each in sent)
    with pytest.raises(AuthenticationFailed):
        ask(address, 10_000, sasl_password="pen", **settings)
