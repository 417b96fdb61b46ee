"""Coq theories, checked: do they compile, and do their theorems rest on no axiom?"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CoqFailed", "NoCoq", "Theories", "coq_problems", "drifted"]

LIBRARY = "MMCache"
"""The name under which the theories know each other."""

TIMEOUT_S = 300
"""For one theory; each takes a second."""

CLOSED = "Closed under the global context"


class NoCoq(Exception):
    """There is no `coqc`, or no `coqchk`, to ask."""


class CoqFailed(Exception):
    """A program of Coq neither accepted nor refused a theory."""


@dataclass(frozen=True)
class Theories:
    """Some theories of a folder, and others that are generated.

    Attributes:
        folder: Where those written by hand are; copies of the generated ones lie beside them.
        order: All names without `.v`, each after what it requires. The last one prints on what
            assumptions all theorems rest, and nothing else.
        generated: The text of those that are generated.
    """

    folder: Path
    order: Sequence[str]
    generated: Mapping[str, str]


def drifted(theories: Theories) -> list[Path]:
    """The files of generated theories that are not as generated."""
    paths = {theories.folder / f"{name}.v": text for name, text in theories.generated.items()}
    return [p for p, text in paths.items() if not p.is_file() or p.read_text("utf-8") != text]


def coq_problems(theories: Theories) -> list[str]:
    """What Coq has against the theories; nothing means that every theorem is proved.

    The generated theories are compiled as generated, whatever the files say. What `coqc` has made
    is checked once more by `coqchk`, a program of its own; the library of Coq is not.

    Raises:
        NoCoq: One of the two programs is not installed.
        CoqFailed: It was killed, or took too long.
        OSError: A theory cannot be read.
    """
    coqc, coqchk = map(_found, ("coqc", "coqchk"))
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for theory in theories.order:
            text = theories.generated.get(theory)
            if text is None:
                text = (theories.folder / f"{theory}.v").read_text("utf-8")
            (work / f"{theory}.v").write_text(text, "utf-8")
        said = ""
        for theory in theories.order:
            run = _run([coqc, "-q", "-R", ".", LIBRARY, f"{theory}.v"], work)
            if run.returncode != 0:
                return [f"{theory}.v is refused:\n{run.stderr.strip()}"]
            said = run.stdout.strip()
        ours = [word for theory in theories.order for word in ("-norec", f"{LIBRARY}.{theory}")]
        run = _run([coqchk, "-silent", "-R", ".", LIBRARY, *ours], work)
        if run.returncode != 0:
            return [f"coqchk refuses what coqc has made:\n{run.stderr.strip()}"]
    return [] if said == CLOSED else [f"the theorems rest on assumptions:\n{said}"]


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NoCoq(f"{name} is not installed; Debian and Ubuntu have it in the package coq")
    return path


def _run(command: list[str], work: Path) -> subprocess.CompletedProcess[str]:
    name = Path(command[0]).name
    try:
        run = subprocess.run(
            command, cwd=work, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise CoqFailed(f"{name} took more than {TIMEOUT_S} s for {command[-1]}") from None
    if run.returncode < 0:
        raise CoqFailed(f"{name} was killed by signal {-run.returncode} at {command[-1]}")
    return run
