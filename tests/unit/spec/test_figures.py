"""What README says of the mutants of the specification is what there is."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from mmcache_conformance.suites.load import load_suite
from mmcache_spec.generate.managers import MANAGERS, specified
from mmcache_spec.generate.worth import mutants_of
from mmcache_spec.model.equivalents import EQUIVALENT
from mmcache_spec.oracle import answers_otherwise

README = Path(__file__).parents[3] / "README.md"
MANIFEST = json.loads((files("mmcache_vectors") / "manifest.json").read_text())
LISTED = {f"{name}: {mutant}" for name in MANAGERS for mutant in EQUIVALENT[name]}
BY_THE_OTHERS = {
    strength.replace(": mutant ", ": ", 1)
    for strengths in MANIFEST["strengths"].values()
    for strength in strengths
    if ": mutant " in strength
}
"""What the manifest counts: mutants that are killed by a vector which is not a deep one."""


@cache
def every() -> frozenset[str]:
    """All mutants, by the name of their model and their own; it takes a moment to make them."""
    return frozenset(f"{name}: {m.name}" for name in MANAGERS for m in mutants_of(specified(name)))


def told() -> tuple[int, int, int]:
    """Killed, all, and equivalent."""
    found = re.search(r"(\d+) of\s+(\d+); in the other (\d+) Z3", README.read_text())
    assert found is not None
    killed, total, equivalent = map(int, found.groups())
    return killed, total, equivalent


def test_all_but_the_equivalent_mutants_are_said_to_be_killed() -> None:
    assert every() >= LISTED
    assert told() == (len(every() - LISTED), len(every()), len(LISTED))


def test_the_manifest_counts_those_that_need_no_deep_vector() -> None:
    assert len(BY_THE_OTHERS) == MANIFEST["statistics"]["mutants killed"]
    assert every() - LISTED >= BY_THE_OTHERS


@pytest.mark.slow
def test_the_deep_vectors_kill_the_rest_and_nothing_kills_what_is_equivalent() -> None:
    deep = [v for v in load_suite() if v.id in MANIFEST["sizes"]["deep"]]
    killed = {
        f"{name}: {m.name}"
        for name in MANAGERS
        for m in mutants_of(specified(name))
        if f"{name}: {m.name}" not in BY_THE_OTHERS
        for v in deep
        if v.manager == MANAGERS[name] and answers_otherwise(m.system, v.parameters, v.steps)
    }
    assert killed | BY_THE_OTHERS == every() - LISTED
