"""`millstream schemas`: list, get, register, check, delete, config, in any schema registry."""

import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import click

from broker.serde.registry.transport import RegistryTransport, TransportOptions
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import SchemaKind
from millstream.commands.options import REGISTRY, confirm_deletion, json_option, platform_address
from millstream.output import Output, Row

F = TypeVar("F", bound=Callable[..., Any])  # Any: click passes the arguments by name

LATEST = "latest"
KINDS = {".avsc": SchemaKind.AVRO, ".json": SchemaKind.JSON, ".proto": SchemaKind.PROTOBUF}
INCOMPATIBLE = 1


class RegistryCalls:
    """Sends requests to one registry; paths are given as segments, for subjects with slashes."""

    def __init__(self, url: str, auth: str | None) -> None:
        """`auth` is user:password, or a token."""
        user, colon, password = (auth or "").partition(":")
        options = TransportOptions(auth=(user, password) if colon else auth, retries=0)
        self._transport = RegistryTransport(url.split(","), options)

    def call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: object = None,
    ) -> object:
        """Send a request and return the response; raises RegistryError if it is refused."""
        address = "".join(f"/{quote(part, safe='')}" for part in path)
        parameters = {
            name: value if isinstance(value, str) else str(value).lower()
            for name, value in (query or {}).items()
        }
        return self._transport.ask(method, address, query=parameters, body=body)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


def registry_option(command: F) -> F:
    """`--registry` and `--auth`: the command gets `registry`, calls to that address."""

    def build(context: click.Context, _: click.Parameter, value: str) -> RegistryCalls:
        return context.with_resource(closing(RegistryCalls(value, context.params.pop("auth"))))

    command = click.option(
        "--registry",
        "-R",
        default=lambda: platform_address("registry"),
        show_default=REGISTRY,
        envvar="MILLSTREAM_REGISTRY",
        metavar="URL",
        callback=build,
        help="The schema registry: Millstream's or Confluent's.",
    )(command)
    return click.option(
        "--auth",
        is_eager=True,
        envvar="MILLSTREAM_REGISTRY_AUTH",
        metavar="USER:PASSWORD",
        help="User name and password, or a token.",
    )(command)


def schema_arguments(command: F) -> F:
    """SUBJECT, FILE, `--type`, `--reference` and `--normalize`, for commands that send a schema."""
    for decorate in (
        click.option(
            "--normalize", is_flag=True, help="Normalize the schema before it is compared."
        ),
        click.option(
            "--reference",
            "references",
            multiple=True,
            metavar="NAME=SUBJECT:VERSION",
            help="A schema that this one refers to; repeatable, in order.",
        ),
        click.option(
            "--type",
            "kind",
            type=click.Choice([kind.value for kind in SchemaKind], case_sensitive=False),
            help="Default: by the suffix of the file (.avsc, .json, .proto), otherwise AVRO.",
        ),
        click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-"),
        click.argument("subject"),
    ):
        command = decorate(command)
    return command


@click.group()
def schemas() -> None:
    """Manage the schemas of a registry: list, get, register, check, delete, config."""


@schemas.command(name="list")
@click.option("--prefix", default=":*:", help="Only subjects with this prefix. Default: all.")
@click.option("--deleted", is_flag=True, help="Include soft-deleted ones.")
@click.option("--all", "everything", is_flag=True, help="All versions, not only the latest.")
@registry_option
@json_option
def list_(
    prefix: str, deleted: bool, everything: bool, registry: RegistryCalls, output: Output
) -> None:
    """List subjects and their latest versions."""
    listed = registry.call(
        "GET",
        "schemas",
        query={"subjectPrefix": prefix, "deleted": deleted, "latestOnly": not everything},
    )
    rows = [_row(each, deleted=deleted) for each in cast("list[Row]", listed)]
    output.rows(rows, empty="no schemas")


def _row(version: Row, *, deleted: bool) -> Row:
    return {
        "subject": version["subject"],
        "version": version["version"],
        "id": version["id"],
        "type": version.get("schemaType", SchemaKind.AVRO.value),
        **({"deleted": version.get("deleted", False)} if deleted else {}),
    }


@schemas.command()
@click.argument("subject", required=False)
@click.option("--version", default=LATEST, show_default=True, help="The version of the subject.")
@click.option(
    "--id", "schema_id", type=int, help="Show the schema with this id, instead of a subject."
)
@click.option("--deleted", is_flag=True, help="Also if it is soft-deleted.")
@registry_option
@json_option
def get(
    subject: str | None,
    version: str,
    schema_id: int | None,
    deleted: bool,
    registry: RegistryCalls,
    output: Output,
) -> None:
    """Show a schema, by SUBJECT and version or by id."""
    if (subject is None) == (schema_id is None):
        raise click.UsageError("use either a subject or --id")
    if subject is None:
        response = registry.call("GET", "schemas", "ids", str(schema_id))
    else:
        query = {"deleted": deleted}
        response = registry.call("GET", "subjects", subject, "versions", version, query=query)
    record = cast("Row", response)
    output.line(record, str(record["schema"]))


@schemas.command()
@schema_arguments
@registry_option
@json_option
def register(  # noqa: PLR0913 - one argument per option
    subject: str,
    file: str,
    kind: str | None,
    references: tuple[str, ...],
    normalize: bool,
    registry: RegistryCalls,
    output: Output,
) -> None:
    """Register the schema in FILE (or standard input) under SUBJECT."""
    body = _body(file, kind, references)
    path = ("subjects", subject, "versions")
    response = registry.call("POST", *path, query={"normalize": normalize}, body=body)
    schema_id = cast("Row", response)["id"]
    output.done(f'"{subject}" has schema {schema_id}', subject=subject, id=schema_id)


@schemas.command()
@schema_arguments
@click.option(
    "--version", help="Compare with this version. Default: as the compatibility level requires."
)
@registry_option
@json_option
def check(  # noqa: PLR0913 - one argument per option
    subject: str,
    file: str,
    kind: str | None,
    references: tuple[str, ...],
    normalize: bool,
    version: str | None,
    registry: RegistryCalls,
    output: Output,
) -> None:
    """Check whether the schema in FILE could be registered under SUBJECT; exit code 1 if not."""
    path = ("compatibility", "subjects", subject, "versions")
    query = {"verbose": True, "normalize": normalize}
    body = _body(file, kind, references)
    response = registry.call("POST", *path, *([version] if version else []), query=query, body=body)
    verdict = cast("Row", response)
    differences = cast("list[str]", verdict.get("messages") or [])
    if verdict["is_compatible"]:
        output.done(f'compatible with "{subject}"', compatible=True, differences=[])
        return
    record = {"ok": False, "compatible": False, "differences": differences}
    output.line(record, "\n".join([f'not compatible with "{subject}"', *differences]))
    raise click.exceptions.Exit(INCOMPATIBLE)


def _body(file: str, kind: str | None, references: tuple[str, ...]) -> dict[str, object]:
    named = [_reference(each) for each in references]
    if file == "-":
        text = sys.stdin.read()
    else:
        try:
            text = Path(file).read_text()
        except OSError as error:
            raise click.UsageError(f'cannot read "{file}": {error.strerror}') from error
    schema_type = (
        KINDS.get(Path(file).suffix, SchemaKind.AVRO).value if kind is None else kind.upper()
    )
    return {"schema": text, "schemaType": schema_type, "references": named}


def _reference(text: str) -> dict[str, object]:
    name, _, target = text.partition("=")
    subject, _, version = target.rpartition(":")
    if not name or not subject or not version.isdecimal():
        raise click.UsageError(f'"{text}" is not NAME=SUBJECT:VERSION')
    return {"name": name, "subject": subject, "version": int(version)}


@schemas.command()
@click.argument("subject")
@click.option("--version", help="Delete only this version. Default: all.")
@click.option(
    "--permanent", is_flag=True, help="Delete permanently; the versions must be soft-deleted first."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@registry_option
@json_option
def delete(
    subject: str,
    version: str | None,
    permanent: bool,
    yes: bool,
    registry: RegistryCalls,
    output: Output,
) -> None:
    """Delete SUBJECT or one of its versions; a soft delete, so ids can still be looked up."""
    how = "permanent delete" if permanent else "soft delete"
    what = "with all versions" if version is None else f"version {version}"
    confirm_deletion((subject,), f"{what} ({how})", yes=yes, output=output)
    path = ("subjects", subject, *(() if version is None else ("versions", version)))
    response = registry.call("DELETE", *path, query={"permanent": permanent})
    versions = response if isinstance(response, list) else [response]
    numbers = ", ".join(map(str, versions))
    output.done(f'"{subject}" deleted ({how}): {numbers}', subject=subject, versions=versions)


@schemas.command()
@click.argument("subject", required=False)
@click.option(
    "--set",
    "level",
    type=click.Choice([level.value for level in CompatibilityLevel], case_sensitive=False),
    help="The new compatibility level.",
)
@click.option("--unset", is_flag=True, help="Reset to the global compatibility level.")
@registry_option
@json_option
def config(
    subject: str | None, level: str | None, unset: bool, registry: RegistryCalls, output: Output
) -> None:
    """Show or change the compatibility level of SUBJECT, or the global one."""
    if unset and level is not None:
        raise click.UsageError("--set and --unset cannot be combined")
    path = ("config", *(() if subject is None else (subject,)))
    if unset:
        registry.call("DELETE", *path)
    elif level is not None:
        registry.call("PUT", *path, body={"compatibility": level.upper()})
    query = {"defaultToGlobal": True}
    output.record(cast("Row", registry.call("GET", *path, query=query)))
