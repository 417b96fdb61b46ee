"""What `mmcache_conformance` offers to a program, and that it loads nothing before it is asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mmcache_conformance
from mmcache_conformance import TargetError, exit_code, load_suite, open_target, run_target
from tests.support.drivers import short_vectors


def test_the_example_of_the_docstring() -> None:
    vectors = short_vectors()
    report = run_target(open_target("reference"), vectors)
    assert exit_code([report]) == 0
    wrong = run_target(open_target("tests.known_bad.managers:UnfilteredReport"), vectors)
    assert exit_code([wrong]) == 1
    with pytest.raises(TargetError):
        open_target("no_such:C").start()


def test_a_vector_is_played_in_larger_worlds_without_being_asked_to() -> None:
    """A verdict of the interface is worth as much as one of the command."""
    target = open_target("tests.unit.conformance.test_stretch:WithoutCase", in_process=True)
    short = tuple(v for v in load_suite() if len(v.steps) < 30)
    assert exit_code([run_target(target, short)]) == 1
    assert exit_code([run_target(target, short, stretch=False)]) == 0


def test_all_that_is_promised_is_there_and_nothing_else() -> None:
    for name in mmcache_conformance.__all__:
        assert getattr(mmcache_conformance, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = mmcache_conformance.nonsense


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import mmcache_conformance, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not {m for m in loaded if m.startswith(("mmcache", "msgspec"))} - {"mmcache_conformance"}
