"""``iii-directory trigger``: call any function and print what it answers."""

from __future__ import annotations

import json
from typing import Any, cast

import click

from iii_directory.cli.common import engine_token, engine_url, fail, url_option


@click.command(
    help="Call FUNCTION with the given fields. A value that is JSON is taken as JSON, else as text."
)
@click.argument("function", required=False)
@click.argument("fields", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--json", "document", help="The payload as JSON; KEY=VALUE fields are laid over it.")
# How the documents of published workers still write it, from the time before `iii trigger` took words.
@click.option("--function-id", help="FUNCTION, as older documents of workers write it.")
@click.option("--payload", help="The same as --json, as older documents of workers write it.")
@click.option("--namespace", "-n", help="The namespace of the function.")
@click.option("--timeout-ms", type=click.IntRange(min=1), default=30_000, show_default=True)
@url_option
def command(
    function: str | None,
    fields: tuple[str, ...],
    document: str | None,
    function_id: str | None,
    payload: str | None,
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

    try:
        result = call_function(
            engine_url(url),
            target,
            build_payload(document if document is not None else payload, fields),
            timeout=timeout_ms / 1000,
            token=engine_token(),
            namespace=namespace,
        )
    except EngineUnreachableError as error:
        fail(str(error))
    except RemoteError as error:
        body = {key: value for key, value in error.body.items() if key != "stacktrace"}
        click.echo(f"Error: {json.dumps(body, indent=2, ensure_ascii=False)}", err=True)
        raise SystemExit(1) from None
    if result is not None:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))


def build_payload(document: str | None, fields: tuple[str, ...]) -> Any:
    """The payload: a JSON document, with fields laid over it if it is an object."""
    base: Any = {}
    if document is not None:
        try:
            base = json.loads(document)
        except ValueError as error:
            fail(f"the payload is not JSON: {error}", code=2)
    if not fields:
        return base
    if not isinstance(base, dict):
        fail("KEY=VALUE fields need a payload that is an object", code=2)
    merged = dict(cast("dict[str, Any]", base))
    for field in fields:
        key, separator, value = field.partition("=")
        if not separator or not key:
            fail(f"'{field}' is not KEY=VALUE", code=2)
        merged[key] = _value(value)
    return merged


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
