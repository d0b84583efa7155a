"""`millstream demo`: `up --demo` for a few seconds, on free ports and a temporary directory."""

import sys
import tempfile

import click

from broker.__main__ import SWITCH_SECONDS
from millstream.commands.live_demo import demo_service
from millstream.commands.options import json_option
from millstream.commands.platform_services import Platform
from millstream.commands.serving import serve
from millstream.output import Output
from millstream.settings import PlatformSettings


@click.command()
@click.option(
    "--seconds", default=8.0, show_default=True, help="How long the demo runs, in seconds."
)
@json_option
def demo(seconds: float, output: Output) -> None:
    """Run the whole platform for a few seconds: connectors, queries, live results.

    To keep it running, use: millstream up --demo
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    with tempfile.TemporaryDirectory(
        prefix="millstream-demo-", ignore_cleanup_errors=True
    ) as folder:
        platform = Platform(PlatformSettings(data_dir=folder, port_base=0))
        services = [
            *platform.services,
            lambda: demo_service(platform.addresses, output, print_results=True),
        ]
        serve(services, output, seconds=seconds)
