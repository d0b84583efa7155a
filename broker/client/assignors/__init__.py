"""Assignors: they assign partitions to the members of a consumer group."""

from broker.client.assignors.api import Assignor, MemberAssignment, MemberSubscription
from broker.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from broker.client.assignors.range_assignor import RangeAssignor
from broker.client.assignors.round_robin import RoundRobinAssignor
from broker.client.assignors.sticky import StickyAssignor

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "MemberAssignment",
    "MemberSubscription",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
]
