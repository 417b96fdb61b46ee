"""From a text to a target, and what a Python class shows by itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mmcache_conformance.errors import TargetError, TargetNameError
from mmcache_conformance.open import open_target
from mmcache_conformance.targets.api import CANNOT
from mmcache_conformance.targets.protocol import CALLS
from tests.support import plain_managers


@pytest.mark.parametrize(
    "spec",
    [
        "",
        ":",
        ",",
        "module",
        "vllm:",
        "a:b:c",
        "a b:C",
        "a:",
        ":C",
        "a:C,b:D,e:F",
        "a.:C",
    ],
)
def test_not_a_target(spec: str) -> None:
    with pytest.raises(TargetNameError, match="does not name a target"):
        open_target(spec)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("no_such_module:C", "ModuleNotFoundError"),
        ("tests.known_bad.misbehaving:Absent", "AttributeError"),
        ("tests.known_bad.misbehaving:not_a_class", "not a class"),
        ("tests.known_bad.misbehaving:CannotBeMade", r"RuntimeError: no GPU here"),
        ("vllm:no/such/path", "no such file or directory"),
    ],
)
def test_cannot_be_started(spec: str, reason: str) -> None:
    target = open_target(spec)
    with pytest.raises(TargetError, match=reason):
        target.start()


def test_opening_imports_nothing() -> None:
    open_target("no_such_module:C")


def test_the_working_directory_is_importable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine_in_the_working_directory.py").write_text(
        "class Outer:\n    from tests.support.plain_managers import Manager as Inner\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    implementation = open_target("engine_in_the_working_directory:Outer.Inner").start()
    assert set(implementation.capabilities) == {"encoder_cache"}


def test_capabilities_of_a_full_manager() -> None:
    spec = "tests.support.plain_managers:Attaches,tests.support.plain_managers:EncoderDecoder"
    implementation = open_target(spec).start()
    observables = ("num_free_slots", "num_freeable_slots", "cached", "freeable", "held")
    assert implementation.capabilities == {
        "encoder_cache": (*CALLS, *observables, "allocate_again"),
        "encoder_decoder": (*CALLS, "num_free_slots"),
    }


def test_capabilities_of_one_that_hides_its_state() -> None:
    implementation = open_target("tests.known_bad.misbehaving:Hidden").start()
    assert implementation.capabilities == {
        "encoder_cache": tuple(call for call in CALLS if call != "reset")
    }


def test_only_the_reference_attaches_by_declaration() -> None:
    assert "allocate_again" in open_target("reference").start().capabilities["encoder_cache"]
    other = open_target("tests.support.plain_managers:Manager").start()
    assert "allocate_again" not in other.capabilities["encoder_cache"]


def test_state_that_cannot_be_compared_any_more_is_no_clause_that_breaks() -> None:
    """The first calls do not come there; so it is not known before."""
    from mmcache_conformance.targets.protocol import Case
    from mmcache_vectors.manager import Allocate, Item, Parameters, Request

    class Turns(plain_managers.Manager):
        turned = False

        def allocate(self, request: Any, input_id: int) -> None:
            self.turned = request.request_id == "late"

        @property
        def num_free_slots(self) -> Any:
            return 1.5 if self.turned else 1

    from mmcache_conformance.targets.python import ManagerClasses, PythonTarget

    target = PythonTarget("turns", lambda: ManagerClasses("turns", Turns, None))
    target.start()
    parameters = Parameters(1, (Request("late", (Item("X", 1),)),))
    (answer,) = target.run(Case("id", "encoder_cache", parameters, (Allocate("late", 0),)))
    assert str(answer.error).startswith(f"{CANNOT}num_free_slots is of type float")
