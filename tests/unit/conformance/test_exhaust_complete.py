"""What `exhaust` calls complete is complete, and what a state holds is told apart and kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmcache import EncoderCacheManager, Request
from mmcache_conformance.cli import cli
from mmcache_conformance.exhaust.search import Exhausted, exhaust
from mmcache_conformance.exhaust.world import SearchScope
from mmcache_conformance.oracle.known import Known, nothing_known
from mmcache_conformance.verdicts.signature import signature_of
from tests.support.plain_managers import Manager as PlainManager

TINY = SearchScope(hashes=2, requests=2, inputs=2, capacity=2)
ARGUMENTS = ("--hashes", "2", "--requests", "2", "--inputs", "2", "--capacity", "2")


def search(cls: type, known: Known = nothing_known) -> Exhausted:
    return exhaust(f"{__name__}:{cls.__name__}", TINY, max_states=20_000, known=known)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["exhaust", *arguments, *ARGUMENTS])


# --- what is complete --------------------------------------------------------------------------


class NeverLooksUp(EncoderCacheManager):
    """A known fault that closes the way to most states: nothing can be allocated."""

    def allocate(self, request: Request, input_id: int) -> None:
        raise RuntimeError("not today")


class ForgetsToClear(EncoderCacheManager):
    """A known fault in an answer only: every state is met all the same."""

    def get_freed_mm_hashes(self) -> list[str]:
        return [*super().get_freed_mm_hashes(), "and one more"]


def test_what_lies_behind_known_faults_only_was_not_searched(tmp_path: Path) -> None:
    """Of the states of the specification one occurs: that is no clean bill of health."""
    target = f"{__name__}:{NeverLooksUp.__name__}"
    path = tmp_path / "expected.toml"
    drafted = CliRunner().invoke(cli, ["expected", target, "--in-process"])
    path.write_text(drafted.output)
    done = run(target, "--expected", str(path))
    assert done.exit_code == 3, done.output
    assert "incomplete: the spec has 44 states here, and 1 of them occurred" in done.output
    assert "complete: all" not in done.output


def test_where_every_state_occurs_a_known_fault_leaves_it_complete() -> None:
    wrong = search(ForgetsToClear).disagreement
    assert wrong is not None
    known = Known(signatures=frozenset({signature_of(wrong.calls[-1], wrong.differences)}))
    found = search(ForgetsToClear, known)
    assert found.disagreement is None
    assert found.known > 0
    assert (found.complete, found.exit_code) == (True, 0)


class OddlyFree(PlainManager):
    """Right in every answer; one thing that it shows is a number where there should be names."""

    freeable: Any = 3.5


def test_what_is_shown_and_cannot_be_compared_is_not_complete() -> None:
    found = search(OddlyFree)
    assert found.disagreement is None
    assert found.uncompared
    assert (found.complete, found.exit_code) == (False, 3)
    done = run(f"{__name__}:{OddlyFree.__name__}")
    assert done.exit_code == 3
    assert "could be compared: encoder_cache: " in done.output
    assert "complete: all" not in done.output.replace("incomplete: all", "")


# --- functions in a state ----------------------------------------------------------------------


class Bound(EncoderCacheManager):
    """Functions that are bound to a part of the state: who copies it must bind them anew."""

    uses: dict[str, int]

    def reset(self) -> None:
        super().reset()
        self.uses = {}
        self.bind()

    def bind(self) -> None:
        self.seen: Callable[[str], int | None] = self.uses.get

    def allocate(self, request: Request, input_id: int) -> None:
        super().allocate(request, input_id)
        mm_hash = request.mm_features[input_id].identifier
        self.uses[mm_hash] = 1
        assert self.seen(mm_hash) == 1, "a copy that reads its original"


class BoundWrapper(Bound):
    def bind(self) -> None:
        self.seen = self.uses.__getitem__


class BoundMethod(Bound):
    def bind(self) -> None:
        self.seen = self.look

    def look(self, mm_hash: str) -> int | None:
        return self.uses.get(mm_hash)


class BoundPartial(Bound):
    def bind(self) -> None:
        self.seen = functools.partial(_get, self.uses)


class BoundInClosure(Bound):
    def bind(self) -> None:
        uses = self.uses
        self.seen = lambda mm_hash: uses.get(mm_hash)


def _get(uses: dict[str, int], mm_hash: str) -> int | None:
    return uses.get(mm_hash)


@pytest.mark.parametrize("cls", [Bound, BoundWrapper, BoundMethod, BoundPartial, BoundInClosure])
def test_a_function_that_is_bound_to_the_state_is_bound_to_its_copy(cls: type) -> None:
    found = search(cls)
    assert found.disagreement is None
    assert not found.opaque
    assert found.complete


class ForgetsByClosure(EncoderCacheManager):
    """The state that goes wrong is in a cell of a closure, and nowhere else."""

    def reset(self) -> None:
        super().reset()
        count = 0

        def next_one() -> int:
            nonlocal count
            count = (count + 1) % 3
            return count

        self.next_one = next_one

    def free(self, request: Request) -> None:
        if self.next_one():
            super().free(request)


def test_what_only_a_closure_remembers_is_told_apart() -> None:
    found = search(ForgetsByClosure)
    assert found.disagreement is not None
    assert [str(call.__struct_config__.tag) for call in found.disagreement.calls].count("free") == 3


# --- how often something is in a list ------------------------------------------------------------


class CountsReports(EncoderCacheManager):
    """Wrong from the fourth report on, which no set of elements and no order of them shows."""

    def reset(self) -> None:
        super().reset()
        self.notes: list[str] = []

    def get_freed_mm_hashes(self) -> list[str]:
        self.notes.append("read")
        told = super().get_freed_mm_hashes()
        return [*told, "too often"] if len(self.notes) > 3 else told


def test_how_often_something_is_in_a_list_counts_up_to_three() -> None:
    found = search(CountsReports)
    assert found.disagreement is not None
    assert len(found.disagreement.calls) == 4
