"""How a member moves from its current to its target assignment (KIP-848). Pure.

A partition never has two owners: a member first revokes partitions, and confirms this by omitting
them from its reported partitions; only then can another member own them.

    STABLE ──target moved──> UNREVOKED_PARTITIONS ──member has revoked them───┐
      ^  ^                       (stays in its epoch, session of rebalance)   │
      │  └──────────nothing to give up: target epoch at once──────────────────┤
      │                                                                       v
      └──────all free, taken────── UNRELEASED_PARTITIONS <──others still own some of its target
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from broker.coordinator.assignors import NOTHING, Partition, Partitions


class MemberState(IntEnum):
    """States, by their numbers in __consumer_offsets."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Holding:
    """A member's epoch, its partitions, and those that it still has to revoke."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NOTHING
    revoking: Partitions = NOTHING

    @property
    def claimed(self) -> Partitions:
        """The partitions that no other member may own now."""
        return self.assigned | self.revoking


@dataclass(frozen=True, slots=True)
class Target:
    """A member's target assignment, and the assignment epoch that it belongs to."""

    epoch: int
    partitions: Partitions


def reconcile(
    holding: Holding,
    target: Target,
    *,
    owned: Partitions | None,
    is_free: Callable[[Partition], bool],
) -> Holding:
    """The next step towards the target; `owned` are the reported partitions, None: unchanged."""
    if holding.state is MemberState.STABLE and holding.epoch == target.epoch:
        return holding
    if holding.state is MemberState.UNREVOKED_PARTITIONS and (
        owned is None or owned & holding.revoking
    ):
        return holding
    kept = holding.assigned & target.partitions
    revoking = holding.assigned - target.partitions
    if revoking and (owned is None or owned & revoking):
        return _moved(
            holding,
            epoch=holding.epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            revoking=revoking,
        )
    wanted = target.partitions - kept
    free = frozenset(partition for partition in wanted if is_free(partition))
    all_free = len(free) == len(wanted)
    return _moved(
        holding,
        epoch=target.epoch,
        state=MemberState.STABLE if all_free else MemberState.UNRELEASED_PARTITIONS,
        assigned=kept | free,
        revoking=NOTHING,
    )


def _moved(
    holding: Holding, *, epoch: int, state: MemberState, assigned: Partitions, revoking: Partitions
) -> Holding:
    same_epoch = epoch == holding.epoch
    previous_epoch = holding.previous_epoch if same_epoch else holding.epoch
    return Holding(epoch, previous_epoch, state, assigned, revoking)
