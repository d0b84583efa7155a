"""Ports for servers that are told theirs before they start, or come back on it after a kill."""

import socket


def held_ports(count: int) -> list[int]:
    """Local ports that only a server which is given one gets, until this process ends.

    They stay bound here, without listening: the system gives them to nobody who asks for any port,
    and a server, which sets SO_REUSEADDR, may listen on them all the same.
    """
    ports = []
    for _ in range(count):
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        ports.append(int(held.getsockname()[1]))
        held.detach()  # stays open
    return ports
