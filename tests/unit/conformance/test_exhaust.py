"""`exhaust` is complete within its scope, and finds what is wrong by the shortest way."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import OrderedDict, deque
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner, Result

from mmcache import EncoderCacheManager, Request
from mmcache_conformance.cli import cli
from mmcache_conformance.exhaust.report import ExhaustReport
from mmcache_conformance.exhaust.search import Exhausted, exhaust
from mmcache_conformance.exhaust.world import SearchScope, alphabet, parameters_of_scope
from mmcache_conformance.oracle.systems import specified
from mmcache_spec.evaluate.interpreter import Interpreter, State
from mmcache_spec.oracle import observe, spec_calls, world_of
from mmcache_vectors.document import schema_of
from tests.known_bad.managers import ENCODER_DECODERS, HISTORIC
from tests.support.plain_managers import Manager as PlainManager

SMALL = SearchScope(hashes=2, requests=2, inputs=2, capacity=3)
TINY = SearchScope(hashes=2, requests=2, inputs=2, capacity=2)
SMALL_ENCODER_DECODER = SearchScope("encoder_decoder", hashes=2, requests=2, inputs=2, capacity=3)
SCOPES = pytest.mark.parametrize("scope", [SMALL, SMALL_ENCODER_DECODER], ids=lambda s: s.manager)
SIZES = pytest.mark.parametrize(
    "scope", [TINY, pytest.param(SMALL, marks=pytest.mark.slow)], ids=lambda s: f"{s.capacity}"
)


def search(target: str, scope: SearchScope, max_states: int = 20_000) -> Exhausted:
    return exhaust(target, scope, max_states=max_states)


@cache
def searched(scope: SearchScope) -> Exhausted:
    """What is found of the reference; two tests look at it."""
    return search("reference", scope)


def states_by_the_interpreter(scope: SearchScope) -> int:
    """The count, by brute force, with nothing of `exhaust` but its alphabet."""
    parameters = parameters_of_scope(scope)
    system, world = specified(scope.manager), world_of(parameters)
    interpreter = Interpreter(system, world)
    calls = [c for call in alphabet(parameters) for c in spec_calls(system, call)]
    hidden = {"since", "clock"}
    ghosts = {v.name for v in system.variables if v.role == "ghost"}

    def shown(state: State) -> Any:
        kept = tuple((n, v) for n, v in sorted(state.items()) if n not in hidden | ghosts)
        return kept, observe(system, world, state).freeable

    start: State = interpreter.initial()
    seen, waiting = {shown(start)}, [start]
    while waiting:
        state = waiting.pop()
        for call in calls:
            after = interpreter.call(state, call).after
            if shown(after) not in seen:
                seen.add(shown(after))
                waiting.append(after)
    return len(seen)


@SCOPES
def test_a_right_manager_is_right_in_every_state(scope: SearchScope) -> None:
    found = searched(scope)
    assert found.disagreement is None
    assert not found.bounded
    assert not found.opaque
    assert found.left_out == ()
    assert found.spec_states == found.spec_states_expected <= found.pairs


@SCOPES
def test_the_count_of_states_is_that_of_the_interpreter(scope: SearchScope) -> None:
    assert searched(scope).spec_states_expected == states_by_the_interpreter(scope)


@pytest.mark.parametrize("cls", HISTORIC, ids=lambda c: "-".join((c.__name__, *c.clauses)))
def test_a_defect_of_history_is_found_in_six_calls(cls: Any) -> None:
    encoder_decoder = cls in ENCODER_DECODERS
    scope = SearchScope(
        "encoder_decoder" if encoder_decoder else "encoder_cache",
        hashes=2, requests=2, inputs=3, capacity=2, sizes=(1, 2),
    )  # fmt: skip
    target = f"{',' if encoder_decoder else ''}{cls.__module__}:{cls.__name__}"
    found = search(target, scope)
    assert found.disagreement is not None
    assert len(found.disagreement.calls) <= 6


def test_the_unfiltered_report_needs_five_calls() -> None:
    """As the bounded model checker says of the variant, and the clause is named."""
    found = search("tests.known_bad.managers:UnfilteredReport", SMALL)
    wrong = found.disagreement
    assert wrong is not None
    assert len(wrong.calls) == 5
    assert wrong.clauses == ("L1",)
    assert [d.what for d in wrong.differences] == ["returns"]


# --- objects of other kinds --------------------------------------------------------------------


class Box:
    """It says itself how it is copied."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Box, (self.value,)


class KeepsABox(EncoderCacheManager):
    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)
        self.box = Box({})


class Raises(EncoderCacheManager):
    def free(self, request: Request) -> None:
        raise LookupError("nobody\nhome")


class ComesAndGoes(EncoderCacheManager):
    """An attribute comes with the first `free`; with "box", one that cannot be taken apart."""

    box = False

    def free(self, request: Request) -> None:
        super().free(request)
        self.freed_once = Box(1) if self.box else True


class TurnsOpaque(ComesAndGoes):
    box = True


@dataclass
class Entry:
    mm_hash: str
    users: list[str] = field(default_factory=list)


class KeepsEntries(EncoderCacheManager):
    """Two tables of the same entries, as a list of the least recently used has them."""

    def reset(self) -> None:
        super().reset()
        self.entries: dict[str, Entry] = {}
        self.recent: deque[Entry] = deque()

    def allocate(self, request: Request, input_id: int) -> None:
        super().allocate(request, input_id)
        mm_hash = request.mm_features[input_id].identifier
        if mm_hash not in self.entries:
            self.entries[mm_hash] = Entry(mm_hash)
            self.recent.append(self.entries[mm_hash])
        self.entries[mm_hash].users = sorted({*self.entries[mm_hash].users, request.request_id})

    def get_freed_mm_hashes(self) -> Any:
        for entry in [e for e in self.recent if e.mm_hash not in self.cached]:
            del self.entries[entry.mm_hash]
            self.recent.remove(entry)
        for entry in self.recent:
            assert self.entries[entry.mm_hash] is entry, "a copy has made two of one"
        return super().get_freed_mm_hashes()


class GrowsAContainer(EncoderCacheManager):
    """An attribute that was a number becomes a container; two states must not share it."""

    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)
        self.log: dict[str, list[int]] | None = None

    def allocate(self, request: Request, input_id: int) -> None:
        super().allocate(request, input_id)
        self.log = self.log or {}
        self.log.setdefault("allocated", []).append(input_id)


def test_an_object_with_other_things_in_it_is_copied_the_slow_way() -> None:
    found = search(f"{__name__}:KeepsABox", SMALL)
    assert found.opaque
    assert found.disagreement is None
    assert found.spec_states == found.spec_states_expected == found.pairs


@SIZES
def test_a_state_that_changes_its_shape_is_followed(scope: SearchScope) -> None:
    found = search(f"{__name__}:GrowsAContainer", scope)
    assert found.disagreement is None
    assert not found.opaque
    assert found.pairs > found.spec_states == found.spec_states_expected


@SIZES
def test_dataclasses_in_the_state_stay_one_where_they_are_one(
    scope: SearchScope,
) -> None:
    found = search(f"{__name__}:KeepsEntries", scope)
    assert found.disagreement is None
    assert not found.opaque
    assert found.pairs > found.spec_states == found.spec_states_expected


@pytest.mark.parametrize(("cls", "opaque"), [("ComesAndGoes", False), ("TurnsOpaque", True)])
@SIZES
def test_attributes_may_come_and_go(cls: Any, opaque: Any, scope: SearchScope) -> None:
    found = search(f"{__name__}:{cls}", scope)
    assert (found.disagreement, found.opaque) == (None, opaque)
    assert found.exit_code == 0


def test_an_exception_is_a_difference() -> None:
    wrong = search(f"{__name__}:Raises", SMALL).disagreement
    assert wrong is not None
    assert len(wrong.calls) == 1
    assert wrong.differences[0].what == "error"
    assert "LookupError: nobody home" in str(wrong.differences[0].got)


# --- the command -------------------------------------------------------------------------------

ARGUMENTS = ["--hashes", "2", "--inputs", "2", "--capacity", "3"]
FEWER = [*ARGUMENTS[:-1], "2"]


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, ["exhaust", *arguments])


def test_the_command_says_that_it_is_complete() -> None:
    done = run("reference", *FEWER)
    assert done.exit_code == 0
    assert "complete: all" in done.output


def test_the_command_tells_the_shortest_way_to_a_difference() -> None:
    done = run("tests.known_bad.managers:UnfilteredReport", *ARGUMENTS)
    assert done.exit_code == 1
    assert "  5  get_freed_mm_hashes()\n" in done.output
    assert "L1 report_disjoint_from_cached" in done.output


def test_json() -> None:
    done = run("reference", *FEWER, "--json")
    assert done.exit_code == 0
    told = json.loads(done.output)
    jsonschema.Draft202012Validator(schema_of(ExhaustReport, "exhaust")).validate(told)
    (found,) = told["scopes"]
    assert found["spec_states"] == found["spec_states_expected"]
    assert msgspec.convert(found["scope"], SearchScope) == TINY


def test_several_scopes_in_several_processes() -> None:
    """In the order asked for, and the same as one by one; the worst of them counts."""
    wrong = "tests.known_bad.managers:UnfilteredReport"
    done = run(wrong, *ARGUMENTS, "--capacity", "0", "--jobs", "2", "--json")
    assert done.exit_code == 1
    scopes = json.loads(done.output)["scopes"]
    assert [found["scope"]["capacity"] for found in scopes] == [3, 0]
    assert [found["disagreement"] is None for found in scopes] == [False, True]
    alone = search(wrong, SearchScope(hashes=2, requests=2, inputs=2, capacity=0))
    assert scopes[1]["pairs"] == alone.pairs


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["reference", "--max-states", "10"], 3, "given up"),
        (["reference", "--sizes", "1"], 2, "give 2 sizes"),
        (["reference", "--sizes", "x,y"], 2, "give 2 sizes"),
        (["no such target"], 2, "does not name a target"),
        (["nowhere:Class"], 3, "could not be exhausted"),
        (["reference", "--cluster", "nowhere"], 3, "needs Dask"),
        ([f"{__name__}:Box"], 3, "could not be exhausted"),
        ([f"{__name__}:KeepsABox,", "--encoder-decoder"], 3, "no encoder_decoder manager"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_said(
    monkeypatch: pytest.MonkeyPatch, arguments: Any, code: int, says: str
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = run(*arguments, *ARGUMENTS)
    assert (done.exit_code, "Traceback" in done.output) == (code, False)
    assert says in done.output


# --- states of every make ----------------------------------------------------------------------


class Recent(OrderedDict[str, int]):
    """An extended container with an attribute of its own."""

    touched = 0

    def touch(self, key: str) -> None:
        self.touched = len(self)
        self.clear()
        self[key] = 1


class Slots:
    __slots__ = ("__seen", "never")

    def __init__(self) -> None:
        self.__seen: set[str] = set()

    def note(self, key: str) -> None:
        self.__seen = {key}


class KeepsMuch(EncoderCacheManager):
    """What managers hold: an extended container, slots, a lock, a function, a logger, itself."""

    def reset(self) -> None:
        super().reset()
        self.recent, self.slots = Recent(), Slots()
        self.lock, self.log, self.key = threading.Lock(), logging.getLogger("x"), len
        self.me = self

    def allocate(self, request: Request, input_id: int) -> None:
        super().allocate(request, input_id)
        self.recent.touch(request.mm_features[input_id].identifier)
        self.slots.note(request.request_id)
        assert self.me is self, "a copy that holds its original"


class WithSlots:
    """A manager that has no `__dict__` at all."""

    __slots__ = ("inner",)

    def __init__(self, cache_size: int) -> None:
        self.inner = EncoderCacheManager(cache_size)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        return self.inner.check_and_update_cache(request, input_id)

    def can_allocate(self, request: Request, input_id: int, budget: int, pending: int) -> bool:
        return self.inner.can_allocate(request, input_id, budget, pending)

    def allocate(self, request: Request, input_id: int) -> None:
        self.inner.allocate(request, input_id)

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        self.inner.free_encoder_input(request, input_id)

    def get_freed_mm_hashes(self) -> list[str]:
        return self.inner.get_freed_mm_hashes()


@pytest.mark.parametrize("cls", [KeepsMuch, WithSlots])
@SIZES
def test_a_state_of_any_make_is_copied_piece_by_piece(cls: type, scope: SearchScope) -> None:
    found = search(f"{__name__}:{cls.__name__}", scope)
    assert (found.disagreement, found.opaque) == (None, False)
    assert found.spec_states == found.spec_states_expected


class NoCopy(EncoderCacheManager):
    """Right by itself; who copies it gets itself."""

    def __deepcopy__(self, memory: object) -> NoCopy:
        return self


class SharesItsReport(EncoderCacheManager):
    """Right by itself, too; but two copies have one report."""

    def __deepcopy__(self, memory: object) -> SharesItsReport:
        new = SharesItsReport(self.cache_size)
        vars(new).update(deepcopy(vars(self)))
        new.freed = self.freed
        return new


class CannotBeCopied(EncoderCacheManager):
    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)
        self.numbers = (n for n in range(9))


@pytest.mark.parametrize("cls", [NoCopy, SharesItsReport, CannotBeCopied])
def test_what_cannot_be_copied_faithfully_is_said_and_never_judged(cls: type) -> None:
    done = run(f"{__name__}:{cls.__name__}", *ARGUMENTS)
    assert done.exit_code == 3, done.output
    assert "could not be exhausted" in done.output
    assert "kept faithfully" in done.output or "cannot be copied" in done.output


class OldestByList(PlainManager):
    """Evicts in the order of first releases: a later release does not move a hash to the end."""

    def reset(self) -> None:
        super().reset()
        self.order: list[str] = []

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        super().free_encoder_input(request, input_id)
        self.order += [h for h in self.idle if h not in self.order]

    def can_allocate(self, *arguments: Any) -> bool:
        as_shown = self.idle
        self.idle = sorted(as_shown, key=self.order.index)
        allowed = super().can_allocate(*arguments)
        self.idle = [h for h in as_shown if h in self.idle]
        self.order = [h for h in self.order if h in self.sizes]
        return allowed


def test_a_difference_behind_the_order_of_a_list_is_found() -> None:
    """Two states that differ in the order of a list only are both gone on from."""
    scope = SearchScope(hashes=3, requests=1, inputs=3, capacity=4)
    assert search(f"{PlainManager.__module__}:{PlainManager.__name__}", scope).exit_code == 0
    found = search(f"{__name__}:OldestByList", scope)
    assert found.disagreement is not None
    assert "L6" in found.disagreement.clauses


class TurnsItsOrder(EncoderCacheManager):
    """Evicts by a plain dict, and an empty report turns that dict: it changes an order only."""

    def reset(self) -> None:
        super().reset()
        self.order: dict[str, None] = {}

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        hit = super().check_and_update_cache(request, input_id)
        self._follow()
        return hit

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        super().free_encoder_input(request, input_id)
        self._follow()

    def free(self, request: Any) -> None:
        super().free(request)
        self._follow()

    def can_allocate(self, request: Any, input_id: int, budget: int, pending: int) -> bool:
        size = request.get_num_encoder_embeds(input_id)
        if size > budget or size + pending > self.num_freeable_slots:
            return False
        while size + pending > self.num_free_slots:
            oldest = next(iter(self.order))
            del self.order[oldest], self.cached[oldest], self._sizes[oldest]
            self.num_free_slots += self.freeable.pop(oldest)
            self.freed.append(oldest)
        return True

    def get_freed_mm_hashes(self) -> list[str]:
        if not self.freed and self.order:
            oldest = next(iter(self.order))
            del self.order[oldest]
            self.order[oldest] = None
        return super().get_freed_mm_hashes()

    def _follow(self) -> None:
        self.order = {h: None for h in self.order if h in self.freeable}
        self.order |= dict.fromkeys(self.freeable)


def test_a_call_that_changes_nothing_but_an_order_is_gone_on_from() -> None:
    scope = SearchScope(hashes=3, requests=1, inputs=3, capacity=2, sizes=(1, 1, 1))
    found = search(f"{__name__}:TurnsItsOrder", scope)
    assert found.disagreement is not None
    assert "L6" in found.disagreement.clauses


def test_the_decisions_are_in_the_json() -> None:
    """L1, by the decision that breaks it."""
    done = run("tests.known_bad.managers:UnfilteredReport", *ARGUMENTS, "--json")
    (found,) = json.loads(done.output)["scopes"]
    assert found["disagreement"]["decisions"] == ["unfiltered_report"]
