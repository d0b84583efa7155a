"""Remote: brokers over TCP as a given machine reaches them; and the machine behind a target."""

from dataclasses import dataclass, replace

from broker.clock import Clock, ManualClock
from broker.machine import Machine


@dataclass(frozen=True, slots=True)
class Remote:
    """Brokers at "host:port,host:port" for a client that runs on a machine, perhaps simulated.

    It may stand wherever a client takes "host:port". There, a string means this machine.
    """

    servers: str
    machine: Machine

    def __str__(self) -> str:
        """The addresses."""
        return self.servers


def servers_of(target: object) -> str | None:
    """The addresses of a target that is reached over TCP; None for one in this process."""
    if isinstance(target, Remote):
        return target.servers
    return target if isinstance(target, str) else None


def machine_of(target: object, clock: Clock | None = None) -> Machine:
    """The machine on which a target's clients run, with another clock if one is given.

    Clients of a broker in this process run on the broker's machine, but never on a manual clock:
    they wait until it is moved.
    """
    machine = target.machine if isinstance(target, Remote) else getattr(target, "machine", None)
    if not isinstance(machine, Machine):
        own = getattr(target, "clock", None)
        machine = Machine() if own is None else Machine(clock=own)
    if clock is None and isinstance(machine.clock, ManualClock):
        clock = Machine().clock
    return machine if clock is None else replace(machine, clock=clock)
