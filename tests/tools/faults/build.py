"""Compile the example with a fault in it, once for each text that it has."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .catalogue import Fault, sources_with

__all__ = ["build_all", "compiler"]

CACHE = Path(__file__).parents[3] / "build" / "faults"
_FLAGS = ("-std=c++17", "-O0", "-w")


def compiler() -> str | None:
    """The compiler, if there is one."""
    return shutil.which("g++") or shutil.which("c++")


def build_all(faults: tuple[Fault | None, ...], jobs: int = 2) -> dict[str, Path]:
    """The program of each fault, by its name; of the example as it is, under no name.

    Raises:
        RuntimeError: One does not compile.
    """
    _prelude(sources_with(None)["mmcache_adapter.hpp"])  # once, before several want it
    with ThreadPoolExecutor(jobs) as pool:
        built = pool.map(_build, faults)
        return dict(zip(("" if f is None else f.name for f in faults), built, strict=True))


def _build(fault: Fault | None) -> Path:
    texts = sources_with(fault)
    digest = hashlib.sha256(repr((sorted(texts.items()), _FLAGS)).encode()).hexdigest()[:16]
    program = CACHE / digest / "driver"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (program.parent / name).write_text(text)
    prelude = _prelude(texts["mmcache_adapter.hpp"])
    part = program.with_name(f"part-{os.getpid()}")
    _compile("-include", str(prelude), "-o", str(part), str(program.parent / "example.cpp"))
    part.replace(program)
    return program


def _prelude(header: str) -> Path:
    """What is the same in all, compiled once."""
    text = f"#include <algorithm>\n#include <cstring>\n#include <numeric>\n{header}"
    digest = hashlib.sha256(repr((text, _FLAGS)).encode()).hexdigest()[:16]
    prelude = CACHE / f"prelude-{digest}" / "prelude.hpp"
    compiled = prelude.with_suffix(".hpp.gch")
    if not compiled.exists():
        prelude.parent.mkdir(parents=True, exist_ok=True)
        prelude.write_text(text)
        part = compiled.with_name(f"part-{os.getpid()}")
        _compile("-x", "c++-header", "-o", str(part), str(prelude))
        part.replace(compiled)
    return prelude


def _compile(*words: str) -> None:
    program = compiler()
    if program is None:
        raise RuntimeError("no C++ compiler")
    command = [program, *_FLAGS, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}\n{done.stderr[:2000]}")
