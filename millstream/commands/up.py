"""`millstream up`: broker, schema registry, Connect worker and SQL server in one process."""

import sys
from collections.abc import Sequence

import click

from broker.__main__ import SWITCH_SECONDS
from millstream.commands.live_demo import demo_service
from millstream.commands.options import json_option
from millstream.commands.platform_options import platform_options
from millstream.commands.platform_services import Platform
from millstream.commands.serving import RunningService, serve
from millstream.output import Output
from millstream.settings import PORTS, PlatformSettings

# An example command for each service, and its option for an address that is not the default.
TRY = {
    "broker": ("millstream topics list", " -b {}"),
    "registry": ("millstream schemas list", " -R {}"),
    "connect": ("millstream connectors list", " --url {}"),
    "sql": ("millstream sql {}", ""),
}


@click.command()
@click.option("--demo", is_flag=True, help="Generate records, run queries and show their results.")
@platform_options
@json_option
def up(demo: bool, settings: PlatformSettings, output: Output) -> None:
    """Run broker, schema registry, Connect worker and SQL server until interrupted.

    All data is in the data directory: the next start continues with all topics, schemas, connectors
    and queries.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    platform = Platform(settings)
    services = platform.services
    if demo:
        services.append(lambda: demo_service(platform.addresses, output))
    serve(services, output, ready=lambda started: _show(started, settings, output))


def _show(started: Sequence[RunningService], settings: PlatformSettings, output: Output) -> None:
    if output.as_json:
        output.line({"event": "ready"}, "")
        return
    rows = []
    for each in started:
        service = str(each.fields["event"])
        address = each.fields.get("bootstrap", each.fields.get("url"))
        if service in TRY:
            command, address_option = TRY[service]
            is_default = settings.port(service) == PORTS[service]
            example = (command if is_default else command + address_option).format(address)
            rows.append({"service": service, "address": address, "try": example})
        else:
            output.line(each.fields, each.text)
    output.rows(rows, title=f"millstream, data in {settings.data_dir}; Ctrl-C stops it")
