"""`mmcache-spec counterexamples`: the conformance vectors, made again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import click

from mmcache_vectors.document import write_atomically
from mmcache_vectors.manager import encode, is_vector

from ..campaign import workers
from ..generate.folder import drift, write_folder
from ..generate.manifest import manifest, statistics
from ..generate.suite import Suite, generate
from .common import UNKNOWN, USAGE, apology, out

__all__ = ["counterexamples_command", "vectors_package"]


@click.command("counterexamples")
@click.option("--check", is_flag=True, help="Write nothing; fail where a file is not as generated.")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="By default, the vectors of the installed mmcache_conformance.",
)
def counterexamples_command(check: bool, folder: Path | None) -> None:
    """Regenerate the conformance vectors, byte for byte.

    Exit code: 0 done, or no drift; 1 drift; 2 usage; 3 unknown.
    """
    package = vectors_package() if folder is None else None
    with apology(UNKNOWN), workers() as executor:
        suite = generate(executor)
    vectors = {f"{v.id}.json": encode(v) for v in suite.vectors.values()}
    # The manifest is the package's own: beside its folder, and beside no other.
    beside = {} if package is None else {package / "manifest.json": manifest(suite)}
    folder = folder or vectors_package() / "vectors"
    with apology(USAGE):
        if check:
            _say_drift([*drift(folder, vectors), *_differs(beside)], suite)
        write_folder(folder, vectors, is_vector)
        for path, content in beside.items():
            write_atomically(path, content)
    out.print(_statistics(suite))


def _say_drift(drifted: Sequence[str], suite: Suite) -> NoReturn:
    for line in drifted:
        out.print(f"✗ {line}")
    out.print("mend it: mmcache-spec counterexamples" if drifted else _statistics(suite))
    sys.exit(1 if drifted else 0)


def _differs(files: Mapping[Path, bytes]) -> Iterator[str]:
    for path, content in files.items():
        if not path.is_file() or path.read_bytes() != content:
            yield f"{path} is not as generated"


def _statistics(suite: Suite) -> str:
    numbers = statistics(suite)
    return "\n".join(f"{what:32} {number}" for what, number in numbers.items())


def vectors_package() -> Path:
    found = find_spec("mmcache_vectors")
    if found is None or not found.submodule_search_locations:
        raise click.UsageError("mmcache_vectors is not installed; say where with --out")
    return Path(found.submodule_search_locations[0])
