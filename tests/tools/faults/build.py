"""Compile the example with a fault in it; several faults make one program, which is told which.

What takes long to compile is the adapter's header and the templates of the library, which are the
same for all. So each fault has a namespace of its own beside the others.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .catalogue import Fault, sources_with

__all__ = ["build_all", "compiler"]

CACHE = Path(__file__).parents[3] / "build" / "faults"
TOGETHER = 12
"""Faults in one program."""

_FLAGS = ("-std=c++17", "-O0", "-w")
_DRIVER, _ENGINE, _ADAPTER = "example.cpp", "example_engine.hpp", "mmcache_adapter.hpp"


def compiler() -> str | None:
    """The compiler, if there is one."""
    return shutil.which("g++") or shutil.which("c++")


def build_all(faults: Sequence[Fault | None], jobs: int = 2) -> dict[str, str]:
    """The command that plays each fault, by its name; the example as it is, under no name.

    Raises:
        RuntimeError: One does not compile.
    """
    groups = list(_groups(faults))
    with ThreadPoolExecutor(jobs) as pool:
        programs = list(pool.map(_build, groups))
    return {
        name: shlex.join((str(program), str(k)))
        for group, program in zip(groups, programs, strict=True)
        for k, name in enumerate(group)
    }


_Texts = dict[str, str]


def _groups(faults: Sequence[Fault | None]) -> Iterator[dict[str, _Texts]]:
    """Those whose adapter is as it ships share a program, so many at a time."""
    shared: dict[str, _Texts] = {}
    as_it_ships = sources_with(None)[_ADAPTER]
    for fault in faults:
        texts = sources_with(fault)
        name = "" if fault is None else fault.name
        if texts[_ADAPTER] != as_it_ships:
            yield {name: texts}
            continue
        shared[name] = texts
        if len(shared) == TOGETHER:
            yield shared
            shared = {}
    if shared:
        yield shared


def _build(group: dict[str, _Texts]) -> Path:
    text = "".join(_program(group))
    digest = hashlib.sha256(repr((text, _FLAGS)).encode()).hexdigest()[:16]
    program = CACHE / digest / "driver"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    source = program.with_name("driver.cpp")
    source.write_text(text)
    part = program.with_name(f"part-{os.getpid()}")
    _compile("-o", str(part), str(source))
    part.replace(program)
    return program


def _program(group: dict[str, _Texts]) -> Iterator[str]:
    """One text with all of them, and a `main` that is given the number of one."""
    every = "".join(text for texts in group.values() for text in texts.values())
    named = {"algorithm", "cstdlib", "cstring", "functional", "numeric"}
    for header in sorted(named | set(re.findall(r"^#include <(.*)>$", every, flags=re.M))):
        yield f"#include <{header}>\n"
    yield next(iter(group.values()))[_ADAPTER]
    for k, texts in enumerate(group.values()):
        engine = re.sub(r"^#(include|(ifndef|define) EXAMPLE).*$", "", texts[_ENGINE], flags=re.M)
        engine = engine.rstrip().removesuffix("#endif")
        driver = re.sub(r"^#include.*$", "", texts[_DRIVER], flags=re.M)
        driver = driver.replace("int main() {", "int serve() {")
        yield f"namespace fault_{k} {{\n{engine}\n{driver}\n}}\n"
    cases = "".join(f"case {k}: return fault_{k}::serve();\n" for k in range(len(group)))
    yield "int main(int, char** words) { switch (std::atoi(words[1])) {\n"
    yield f"{cases}}} return 2; }}\n"


def _compile(*words: str) -> None:
    program = compiler()
    if program is None:
        raise RuntimeError("no C++ compiler")
    command = [program, *_FLAGS, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}\n{done.stderr[:2000]}")
