"""Ports for servers that need a fixed port before they start or after a restart."""

import socket


def held_ports(count: int) -> list[int]:
    """Reserve local ports until this process ends.

    They are bound here without listening, so the system does not assign them as free ports. A
    server that sets SO_REUSEADDR can still listen on them.
    """
    ports = []
    for _ in range(count):
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        ports.append(int(held.getsockname()[1]))
        held.detach()  # stays open
    return ports
