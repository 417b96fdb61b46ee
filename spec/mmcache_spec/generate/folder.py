"""A folder of generated files: brought up to date without touching what is somebody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mmcache_vectors.document import write_atomically

__all__ = ["ForeignFile", "drift", "write_folder"]


class ForeignFile(Exception):
    """A file stands where generated ones are to be written, and it is none of them."""


def write_folder(folder: Path, files: Mapping[str, bytes], ours: Callable[[bytes], bool]) -> None:
    """Leave exactly these files in the folder, which is made if it is not there.

    Args:
        folder: Nothing outside it is written or deleted.
        files: The content of each file, by its name.
        ours: Whether a file with this content may be replaced or deleted.

    Raises:
        ForeignFile: Something there is not ours; nothing has been changed.
        OSError: It cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    old = sorted(folder.iterdir())
    for path in old:
        if not path.is_file() or path.is_symlink() or not ours(path.read_bytes()):
            raise ForeignFile(
                f"{path} is not a file that this command writes; "
                "nothing is changed. Give a new or an empty folder"
            )
    for name, content in files.items():
        write_atomically(folder / name, content)
    for path in old:
        if path.name not in files:
            path.unlink()


def drift(folder: Path, files: Mapping[str, bytes]) -> Iterator[str]:
    """What is not as generated, in words: a line a file.

    Raises:
        OSError: A file cannot be read.
    """
    present = {p.name: p for p in sorted(folder.glob("*")) if p.is_file()}
    for name in sorted({*files, *present}):
        if name not in files:
            yield f"{folder / name} is not generated any more"
        elif name not in present:
            yield f"{folder / name} is missing"
        elif present[name].read_bytes() != files[name]:
            yield f"{folder / name} differs"
