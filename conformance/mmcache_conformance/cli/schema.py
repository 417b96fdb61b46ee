"""`mmcache-conformance schema`: the JSON Schema of everything that is read or written."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import click

__all__ = ["SCHEMAS", "schema"]

SCHEMAS: dict[str, tuple[str, str, str]] = {
    "vector": ("mmcache_vectors.manager", "json_schema", "a vector of a manager (the default)"),
    "engine-vector": ("mmcache_vectors.engine", "json_schema", "a vector of an engine"),
    "pair-vector": (
        "mmcache_vectors.pair",
        "json_schema",
        "a vector of a pair of processor caches",
    ),
    "run": ("mmcache_conformance.verdicts.model", "run_schema", "what run --json prints"),
    "workloads": (
        "mmcache_conformance.engines.random",
        "workloads_schema",
        "what workloads --json prints",
    ),
    "expected": (
        "mmcache_conformance.verdicts.expected",
        "expected_failures_schema",
        "a file of expected failures",
    ),
    "adapter": (
        "mmcache_conformance.targets.wire",
        "adapter_schema",
        "the messages of the adapter protocol",
    ),
    "matrix": ("mmcache_conformance.matrix.report", "matrix_schema", "what matrix --json prints"),
    "log": ("mmcache_conformance.logs.format", "log_schema", "a line of a log"),
    "check": ("mmcache_conformance.logs.verdict", "check_schema", "what check --json prints"),
    "list": ("mmcache_conformance.suites.listing", "Listing", "what list --json prints"),
    "smoke": ("mmcache_conformance.verdicts.smoke", "SmokeReport", "what smoke --json prints"),
    "differ": ("mmcache_conformance.differ.report", "DifferReport", "what differ --json prints"),
    "differ-pair": (
        "mmcache_conformance.differ.pairs",
        "PairDifferReport",
        "what differ --json prints of a pair",
    ),
    "exhaust": (
        "mmcache_conformance.exhaust.report",
        "ExhaustReport",
        "what exhaust --json prints",
    ),
}
"""Under each name: where its type is, or what makes its schema, and what it is the schema of."""


def _listed() -> str:
    width = max(map(len, SCHEMAS))
    return "\n".join(f"{name:{width}}  {says}" for name, (_, _, says) in SCHEMAS.items())


@click.command(help=f"Print a JSON Schema.\n\n\b\n{_listed()}")
@click.argument("what", type=click.Choice(list(SCHEMAS)), default="vector")
def schema(what: str) -> None:
    from mmcache_vectors.document import schema_of

    module, name, says = SCHEMAS[what]
    found: Any = getattr(import_module(module), name)
    content = schema_of(found, says) if isinstance(found, type) else found()
    click.echo(json.dumps(content, indent=2, sort_keys=True))
