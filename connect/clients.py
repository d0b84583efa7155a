"""Clients: producers, consumers and admins of connectors, with settings by Kafka's names.

    producer.compression.type=zstd               (worker: for all connectors)
    producer.override.compression.type=lz4       (connector: overrides the worker's)

Kafka's names have dots, our clients' the same names with underscores. Logins (`sasl.jaas.config`)
and certificates in PEM files (`ssl.truststore.location`) are supported. A setting that our clients
do not have is refused: if it were ignored, its effect would silently be missing.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeVar, cast

from broker.client.classic_group_member import GroupConfig
from broker.client.cluster_admin import Admin
from broker.client.config import ClusterConfig, NetworkConfig, ProducerConfig
from broker.client.consumer_config import ConsumerConfig
from broker.client.opening import Target, admin, consumer, producer
from broker.client.record_consumer import Consumer
from broker.client.record_producer import Producer
from broker.errors import ConfigError as ClientConfigError
from connect.config_def import ConfigType, parse_type, with_prefix
from connect.errors import ConfigError

T = TypeVar("T")

ClientKind = Literal["producer", "consumer", "admin"]

CONFIGS: dict[ClientKind, tuple[type, ...]] = {
    "producer": (ProducerConfig, ClusterConfig, NetworkConfig),
    "consumer": (ConsumerConfig, GroupConfig, ClusterConfig, NetworkConfig),
    "admin": (ClusterConfig, NetworkConfig),
}
SERVERS = "bootstrap.servers"
# The maximum of the protocol and of thread timeouts; Kafka Connect waits as long.
LONGEST_MS = 2_147_483_647
ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
JAAS = "sasl.jaas.config"
JAAS_OPTION = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
PEM_FILES = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.keystore.location": "ssl.certificate.location",
}
STORE_TYPES = ("ssl.truststore.type", "ssl.keystore.type")


@dataclass(frozen=True, slots=True)
class Clients:
    """Opens clients for the tasks of a worker."""

    target: Target
    worker_config: Mapping[str, str] = field(default_factory=dict)

    def producer(self, connector: Mapping[str, str], **defaults: object) -> Producer:
        """A producer of a connector; the user's settings override the defaults."""
        return self._open("producer", producer, connector, defaults)

    def consumer(self, connector: Mapping[str, str], **defaults: object) -> Consumer:
        """A consumer of a connector."""
        return self._open("consumer", consumer, connector, defaults)

    def admin(self, connector: Mapping[str, str], **defaults: object) -> Admin:
        """An admin of a connector."""
        return self._open("admin", admin, connector, defaults)

    def _open(
        self,
        kind: ClientKind,
        opened: Callable[..., T],
        connector: Mapping[str, str],
        defaults: Mapping[str, object],
    ) -> T:
        defined = with_prefix(f"{kind}.", self.worker_config)
        named = {
            **{name: value for name, value in defined.items() if not name.startswith("override.")},
            **with_prefix(f"{kind}.override.", connector),
        }
        servers = named.pop(SERVERS, None)
        try:
            return opened(servers or self.target, **{**defaults, **client_settings(kind, named)})
        except ClientConfigError as error:
            raise ConfigError(error.message, at=f"settings of a {kind}", hint=error.hint) from error


def client_settings(kind: ClientKind, named: Mapping[str, str]) -> dict[str, object]:
    """Settings as arguments of the clients; ConfigError for a setting that they do not have."""
    known = _known(kind)
    settings: dict[str, object] = {}
    for name, text in named.items():
        ours = PEM_FILES.get(name, name)
        if name == JAAS:
            settings.update(_credentials(text))
        elif name in STORE_TYPES:
            if text != "PEM":
                raise ConfigError(
                    f'"{name}" is "{text}", which is not supported',
                    hint="certificates must be in PEM files: set it to PEM",
                )
        elif ours not in known:
            raise _unknown(kind, name, list(known))
        else:
            settings[ours.replace(".", "_")] = _value(name, text, known[ours])
    return settings


def is_client_setting(kind: ClientKind, name: str) -> bool:
    """Whether clients of this kind have this setting."""
    return name == JAAS or name in STORE_TYPES or PEM_FILES.get(name, name) in _known(kind)


def _known(kind: ClientKind) -> dict[str, object]:
    return {
        option.name.replace("_", "."): option.type
        for config in CONFIGS[kind]
        for option in fields(cast("type[ClusterConfig]", config))
    }


def _value(name: str, text: str, kind: object) -> object:
    if name == "partition.assignment.strategy":
        classes = parse_type(name, text, ConfigType.LIST)
        assert isinstance(classes, list)
        return [ASSIGNORS.get(each.rpartition(".")[2], each) for each in classes]
    if kind is int or kind == int | None:
        number = parse_type(name, text, ConfigType.LONG)
        assert isinstance(number, int)
        return min(number, LONGEST_MS)
    if kind is bool or kind == bool | None:
        return parse_type(name, text, ConfigType.BOOLEAN)
    return text


def _credentials(jaas: str) -> dict[str, object]:
    """User and password of the login modules for PLAIN and SCRAM."""
    options = {name: re.sub(r"\\(.)", r"\1", text) for name, text in JAAS_OPTION.findall(jaas)}
    if "username" not in options or "password" not in options:
        raise ConfigError(
            f'"{JAAS}" has no username and password',
            hint="only the login modules for PLAIN and SCRAM are supported",
        )
    return {"sasl_username": options["username"], "sasl_password": options["password"]}


def _unknown(kind: str, name: str, known: list[str]) -> ConfigError:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"the settings are {', '.join(sorted(known))}"
    return ConfigError(f'unknown setting "{name}" of a {kind}', hint=hint)
