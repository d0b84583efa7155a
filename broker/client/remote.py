"""Remote: the addresses of brokers as seen from a machine; and the machine of a target."""

from dataclasses import dataclass, replace

from broker.clock import Clock, ManualClock
from broker.machine import Machine


@dataclass(frozen=True, slots=True)
class Remote:
    """Brokers at "host:port,host:port" for a client on a given machine, perhaps a simulated one.

    Clients accept it in place of "host:port". A string means this machine.
    """

    servers: str
    machine: Machine

    def __str__(self) -> str:
        return self.servers


def servers_of(target: object) -> str | None:
    """The addresses of a target over TCP; None for a broker in this process."""
    if isinstance(target, Remote):
        return target.servers
    return target if isinstance(target, str) else None


def machine_of(target: object, clock: Clock | None = None) -> Machine:
    """The machine on which a target's clients run, optionally with another clock.

    Clients of a broker in this process run on the broker's machine, but never with a manual
    clock: they would wait until it is moved.
    """
    machine = target.machine if isinstance(target, Remote) else getattr(target, "machine", None)
    if not isinstance(machine, Machine):
        own = getattr(target, "clock", None)
        machine = Machine() if own is None else Machine(clock=own)
    if clock is None and isinstance(machine.clock, ManualClock):
        clock = Machine().clock
    return machine if clock is None else replace(machine, clock=clock)
