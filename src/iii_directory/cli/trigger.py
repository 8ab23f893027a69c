"""``iii-directory trigger``: call any function and print what it answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from iii_directory.cli.command_help import complete_functions
from iii_directory.cli.common import EXIT_CODES, engine_url, fail, is_named, listens, program, url_option
from iii_directory.cli.output import json_text, no_pager_option, note, print_json, print_string, say
from iii_directory.cli.tokens import engine_token
from iii_directory.shapes import is_object

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Trigger(click.Command):
    """Accepts ``--json PAYLOAD`` as well, the spelling before ``--payload``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_translated(args)))


def _translated(args: list[str]) -> Iterator[str]:
    """Translate an older command line into today's, with a hint on stderr."""
    words = iter(args)
    for word in words:
        if word.startswith("--json="):
            yield from _payload(word.removeprefix("--json="))
            continue
        if word == "--json":
            following = next(words, None)
            # `--json` alone asks for JSON output today; only a word that looks like JSON was a payload.
            if following is not None and (
                following.startswith(("{", "[", '"'))
                or following in ("null", "true", "false")
                or following.isdigit()
            ):
                yield from _payload(following)
                continue
            yield word
            if following is not None:
                yield following
            continue
        yield word


def _payload(document: str) -> tuple[str, str]:
    note("--json prints the whole reply now; a payload is given with --payload")
    return "--payload", document


@click.command(
    cls=_Trigger,
    help="Call FUNCTION with the given fields and print its answer: text as text, everything else as JSON. A "
    "VALUE that is valid JSON is sent as JSON, else as text.",
    epilog=EXIT_CODES,
)
@click.argument("function", required=False, shell_complete=complete_functions)
@click.argument("fields", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--payload", help="The payload as JSON; KEY=VALUE fields are set in it.")
@click.option("--json", "as_json", is_flag=True, help="Print the exact reply as JSON, an error's too.")
# How the documents of published workers still write it, from the time before `iii trigger` took words.
@click.option("--function-id", help="FUNCTION, as older documents of workers write it.")
@click.option("--namespace", "-n", help="The namespace of the function.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(min=1),
    default=30_000,
    show_default=True,
    help="How long to wait for the answer.",
)
@no_pager_option
@url_option
def command(
    function: str | None,
    fields: tuple[str, ...],
    payload: str | None,
    as_json: bool,
    function_id: str | None,
    namespace: str | None,
    timeout_ms: int,
    url: str | None,
) -> None:
    if function_id is not None and function is not None:
        # With --function-id every positional word is a field.
        fields = (function, *fields)
        function = None
    target = function_id or function
    if target is None:
        fail("which function? For example: iii-directory trigger directory::skills::index", code=2)
    from iii_directory.bus.client import EngineUnreachableError, RemoteError, call_function

    address = engine_url(url)
    named = is_named(url)
    # Without a listener a withheld token is not worth a warning; a named address is tried in any case.
    wanted = named or listens(address)
    try:
        result = call_function(
            address,
            target,
            build_payload(payload, fields),
            timeout=timeout_ms / 1000,
            token=engine_token(address, named=named) if wanted else None,
            namespace=namespace,
        )
    except EngineUnreachableError as error:
        way_out = "" if listens(address) else f"; start one: {program()} up"
        fail(f"{error}{way_out}")
    except RemoteError as error:
        body = {key: value for key, value in error.body.items() if key != "stacktrace"}
        if as_json:
            say(json_text(body), err=True)
            raise SystemExit(1) from None
        fail(str(error))
    if isinstance(result, str) and not as_json:
        print_string(result)
    elif result is not None or as_json:
        print_json(result)


def build_payload(document: str | None, fields: tuple[str, ...]) -> Any:
    """Build the payload: a JSON document, with the KEY=VALUE fields set in it if it is an object."""
    base: Any = {}
    if document is not None:
        try:
            base = json.loads(document)
        except ValueError as error:
            fail(f"the payload is not JSON: {error}", code=2)
    if not fields:
        return base
    if not is_object(base):
        fail("KEY=VALUE fields need a payload that is an object", code=2)
    merged = dict(base)
    for field in fields:
        key, separator, value = field.partition("=")
        if not separator or not key:
            fail(f"'{field}' is not KEY=VALUE", code=2)
        try:
            merged[key] = json.loads(value)
        except ValueError:
            merged[key] = value
    return merged
