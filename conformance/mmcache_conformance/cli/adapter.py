"""`mmcache-conformance adapter`: start from an adapter that ships."""

from __future__ import annotations

from pathlib import Path

import click

from .options import make_folder, write_file

__all__ = ["adapter"]


@click.command()
@click.argument("language", type=click.Choice(["cpp"]))
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def adapter(language: str, directory: Path) -> None:
    """Copy an adapter that ships, and its example, to DIRECTORY. No file is overwritten."""
    from importlib.resources import files

    sources = files("mmcache_conformance") / "adapters" / language
    found = sorted(sources.iterdir(), key=lambda file: file.name)
    taken = [file.name for file in found if (directory / file.name).exists()]
    if taken:
        raise click.UsageError(f"{directory} has {', '.join(taken)} already")
    make_folder(directory, "DIRECTORY")
    for file in found:
        write_file(directory / file.name, file.read_bytes())
        click.echo(str(directory / file.name))
