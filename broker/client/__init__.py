"""Clients of any Kafka-protocol broker, embedded or over the network."""

from typing import TYPE_CHECKING

from broker.public_names import public_names

if TYPE_CHECKING:
    from broker.client.administration.values import ConfigChange, ConfigResource, NewTopic
    from broker.client.api import (
        ConsumerRecord,
        OffsetAndMetadata,
        RebalanceListener,
        RecordMetadata,
    )
    from broker.client.classic_group_member import GroupMember
    from broker.client.cluster_admin import Admin
    from broker.client.opening import admin, consumer, group_member, producer
    from broker.client.record_consumer import Consumer
    from broker.client.record_producer import Producer
    from broker.client.shared_clients import SharedClients
else:
    # Serdes and schemas are below this package, and need no client.
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "administration.values": ["ConfigChange", "ConfigResource", "NewTopic"],
            "api": [
                "ConsumerRecord",
                "OffsetAndMetadata",
                "RebalanceListener",
                "RecordMetadata",
            ],
            "classic_group_member": ["GroupMember"],
            "cluster_admin": ["Admin"],
            "opening": ["admin", "consumer", "group_member", "producer"],
            "record_consumer": ["Consumer"],
            "record_producer": ["Producer"],
            "shared_clients": ["SharedClients"],
        },
    )


__all__ = [
    "Admin",
    "ConfigChange",
    "ConfigResource",
    "Consumer",
    "ConsumerRecord",
    "GroupMember",
    "NewTopic",
    "OffsetAndMetadata",
    "Producer",
    "RebalanceListener",
    "RecordMetadata",
    "SharedClients",
    "admin",
    "consumer",
    "group_member",
    "producer",
]
