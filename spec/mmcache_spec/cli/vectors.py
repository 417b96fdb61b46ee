"""`mmcache-spec counterexamples`: the conformance vectors, made again."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from mmcache_vectors.manager import encode

from ..campaign import workers
from ..generate.manifest import manifest, statistics
from ..generate.suite import Suite, generate
from ..generate.walks import walks
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
@click.option(
    "--deep", is_flag=True, help="Instead, write long seeded walks, the deep size, into --out."
)
def counterexamples_command(check: bool, folder: Path | None, deep: bool) -> None:
    """Regenerate the conformance vectors, byte for byte.

    Exit code: 0 done, or no drift; 1 drift; 2 usage; 3 unknown.
    """
    if deep:
        _write_walks(check, folder)
        return
    package = vectors_package()
    folder = folder or package / "vectors"
    with apology(UNKNOWN), workers() as executor:
        suite = generate(executor)
    files = {folder / f"{v.id}.json": encode(v) for v in suite.vectors.values()}
    files[folder.parent / "manifest.json"] = manifest(suite)
    present = {p: p.read_bytes() for p in folder.glob("*.json")}
    present |= {p: p.read_bytes() for p in files if p.is_file()}
    if check:
        drifted = [p for p in sorted({*files, *present}) if files.get(p) != present.get(p)]
        for path in drifted:
            what = (
                "is not generated any more"
                if path not in files
                else ("differs" if path in present else "is missing")
            )
            out.print(f"✗ {path} {what}")
        out.print("mend it: mmcache-spec counterexamples" if drifted else _statistics(suite))
        sys.exit(1 if drifted else 0)
    with apology(USAGE):
        folder.mkdir(parents=True, exist_ok=True)
        for path in present.keys() - files.keys():
            path.unlink()
        for path, content in files.items():
            path.write_bytes(content)
    out.print(_statistics(suite))


def _write_walks(check: bool, folder: Path | None) -> None:
    if folder is None or check:
        raise click.UsageError("--deep needs --out, and nothing to --check: it is not packaged")
    with apology(USAGE), workers() as executor:
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        for vector in walks(executor):
            (folder / f"{vector.id}.json").write_bytes(encode(vector))
            count += 1
    out.print(f"{count} vectors in {folder}")
    out.print(f"run them: mmcache-conformance run --vectors {folder}")


def _statistics(suite: Suite) -> str:
    numbers = statistics(suite)
    return "\n".join(f"{what:32} {number}" for what, number in numbers.items())


def vectors_package() -> Path:
    found = find_spec("mmcache_vectors")
    if found is None or not found.submodule_search_locations:
        raise click.UsageError("mmcache_vectors is not installed; say where with --out")
    return Path(found.submodule_search_locations[0])
