"""The reference and the specification, side by side through random calls.

Each call goes to the reference and to the interpreter of the spec. Compared are every return
value and, after every call, everything that can be observed. The spec's own invariants and call
properties are evaluated as well: they take ten times as long as all the rest, so `make test` does
it on some steps, and the slow test, which CI runs, on every one. The spec never runs the
reference, and the reference shares no code with it.

Where a guard of the spec refuses a call, the spec says nothing about it, and the reference does
one of three things:

* *no room*, a *negative pending size*, an *input charged already*: a duty of the caller that the
  reference can see broken. It raises the named error and is exactly as it was.
* *no room for a hash that is resident*: attaching charges nothing, so the reference needs no room
  for it. It must then do what the spec says of a hit, which is the same effect without the guard.
* `can_allocate` of a resident hash, which no caller does (it asks after a miss), is not called;
  a *negative budget* is a refusal like any other too small one, and changes nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from mmcache import (
    AlreadyAllocatedError,
    EncoderCacheManager,
    EncoderDecoderCacheManager,
    LedgerError,
    NegativeSizeError,
    NoRoomError,
    SizeChangedError,
)
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, State, Step, World
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.ledger import ledger
from tests.known_bad.managers import ENCODER_DECODERS, LEDGERS
from tests.support.quick import first_of_each
from tests.support.requests import Item, Request

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
LOCKSTEP = settings(
    max_examples=1000 if DEEP else 40,
    stateful_step_count=60 if DEEP else 30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
HUNT = settings(
    LOCKSTEP,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    print_blob=False,
    report_multiple_bugs=False,
)

# --- the world ---------------------------------------------------------------------------------

HASHES = ("A", "B", "C", "D", "E")
REQUESTS = {"r1": 4, "r2": 2, "r3": 2}
"""Requests and the number of their items."""
INPUTS = {f"{r}/{p}": (r, p) for r, items in REQUESTS.items() for p in range(items)}


def world_of(capacity: int, sizes: dict[str, int], hash_of: dict[str, str]) -> World:
    return World(
        universe={"Hash": HASHES, "Request": tuple(REQUESTS), "Input": tuple(INPUTS)},
        constants={"capacity": capacity},
        functions={
            "size": sizes,
            "hash_of": hash_of,
            "owner": {i: r for i, (r, _) in INPUTS.items()},
            "position": {i: p for i, (_, p) in INPUTS.items()},
            "inputs_of": REQUESTS,
            "embeds": {i: sizes[h] for i, h in hash_of.items()},
        },
    )


# --- the machines ------------------------------------------------------------------------------

inputs = st.sampled_from(sorted(INPUTS))
requests = st.sampled_from(sorted(REQUESTS))
happenings = st.sampled_from(("wanted", "ends", "wanted", "consumed", "wanted", "ends"))
"""To an input, or to its request."""
# Mostly ample, so that what decides is the room; a little of everything else.
budgets = st.one_of(st.just(99), st.integers(-1, 8))
pendings = st.one_of(st.just(0), st.integers(-1, 4))


class Lockstep(RuleBasedStateMachine):
    """What both ledgers have in common."""

    system: TransitionSystem
    manager_class: type[EncoderCacheManager]
    judges_every = 7
    """The clauses are evaluated on every so many-th step; 0 is never."""
    steps = 0
    ascending = True

    @initialize(
        capacity=st.sampled_from((6, 5, 7, 4, 8, 6, 9, 0)),
        sizes=st.fixed_dictionaries({h: st.sampled_from((3, 2, 4, 3, 2, 4, 1, 0)) for h in HASHES}),
        hash_of=st.fixed_dictionaries({i: st.sampled_from(HASHES) for i in sorted(INPUTS)}),
    )
    def begin(self, capacity: int, sizes: dict[str, int], hash_of: dict[str, str]) -> None:
        self.sizes, self.hash_of = sizes, hash_of
        self.interpreter = Interpreter(self.system, world_of(capacity, sizes, hash_of))
        self.state: State = self.interpreter.initial()
        self.manager = self.manager_class(capacity)
        self.requests = {
            r: Request(
                r, tuple(Item(h, sizes[h]) for h in (hash_of[f"{r}/{p}"] for p in range(items)))
            )
            for r, items in REQUESTS.items()
        }
        self.compare()

    # What a step does.

    def at(self, i: str) -> tuple[Request, int]:
        owner, position = INPUTS[i]
        return self.requests[owner], position

    def ask(self, action: str, **arguments: Any) -> Step:
        """What the spec says; its state moves on."""
        step = self.interpreter.call(self.state, ActionCall(action, arguments))
        self.steps += 1
        if self.judges_every and self.steps % self.judges_every == 0 and not step.refused_by:
            assert self.interpreter.breaks(step) == []
        self.state = step.after
        return step

    def call(self, name: str, *arguments: Any) -> Any:
        """A call whose type says that it answers nothing: what it answers all the same."""
        return getattr(self.manager, name)(*arguments)

    def agree(self, step: Step, answer: Any) -> None:
        assert step.refused_by == ()
        assert answer == step.result
        # 1 == True, and both are an answer to an admission; the type is part of the API.
        assert isinstance(answer, type(step.result))
        self.compare()

    def refused(self, error: type[LedgerError], call: Callable[..., Any], *arguments: Any) -> None:
        before = deepcopy(vars(self.manager))
        try:
            call(*arguments)
        except error:
            assert vars(self.manager) == before
        else:
            raise AssertionError(f"not refused: {call.__name__}{arguments}")

    def compare(self) -> None:
        state, manager = self.state, self.manager
        assert manager.num_free_slots == state["free_slots"]
        assert manager.num_freeable_slots == self.freeable_slots()
        held = {
            f"{r}/{p}"
            for r, request in self.requests.items()
            for p in manager.get_cached_input_ids(request)
        }
        assert held == {i for (i,) in self.held()}
        for request in self.requests.values():
            ascending = list(manager.get_cached_input_ids(request))
            assert ascending == sorted(ascending) or not self.ascending

    def held(self) -> frozenset[tuple[str]]:
        raise NotImplementedError

    def freeable_slots(self) -> int:
        raise NotImplementedError

    def charge(self, i: str) -> None:
        raise NotImplementedError

    # The calls.

    @rule(i=inputs)
    def check_and_update_cache(self, i: str) -> None:
        step = self.ask("check_and_update_cache", input=i)
        self.agree(step, self.manager.check_and_update_cache(*self.at(i)))

    @rule(i=inputs, budget=budgets, pending=pendings)
    def can_allocate(self, i: str, budget: int, pending: int) -> None:
        step = self.ask(
            "can_allocate", input=i, encoder_compute_budget=budget, num_embeds_to_schedule=pending
        )
        arguments = (*self.at(i), budget, pending)
        if "missed" in step.refused_by:
            return
        if "pending_not_negative" in step.refused_by:
            self.refused(NegativeSizeError, self.manager.can_allocate, *arguments)
        elif step.refused_by:
            assert step.refused_by == ("budget_not_negative",)
            assert self.manager.can_allocate(*arguments) is False
            self.compare()
        else:
            self.agree(step, self.manager.can_allocate(*arguments))

    @rule(i=inputs)
    def allocate(self, i: str) -> None:
        self.charge(i)

    @rule(
        todo=st.lists(st.tuples(happenings, inputs, pendings), min_size=8, max_size=16),
        reported=st.booleans(),
    )
    def a_pass(self, todo: list[tuple[str, str, int]], reported: bool) -> None:
        """The calls in the order in which a scheduler makes them."""
        for happens, i, pending in todo:
            if happens == "ends":
                self.free(INPUTS[i][0])
            elif happens == "consumed":
                self.free_encoder_input(i)
            else:
                step = self.ask("check_and_update_cache", input=i)
                self.agree(step, self.manager.check_and_update_cache(*self.at(i)))
                if not step.result:
                    self.can_allocate(i, 99, pending)
                    self.allocate(i)
        if reported:
            self.report()

    @rule(i=inputs)
    def free_encoder_input(self, i: str) -> None:
        step = self.ask("free_encoder_input", input=i)
        self.agree(step, self.call("free_encoder_input", *self.at(i)))

    @rule(r=requests)
    def free(self, r: str) -> None:
        step = self.ask("free", request=r)
        self.agree(step, self.call("free", self.requests[r]))

    def report(self) -> None:
        step = self.ask("get_freed_mm_hashes")
        told = self.manager.get_freed_mm_hashes()
        assert isinstance(told, list)
        assert len(told) == len(set(told))
        self.agree(step, frozenset((h,) for h in told))

    @rule(times=st.integers(0, 2))
    def reports(self, times: int) -> None:
        for _ in range(times):
            self.report()

    @rule(now=st.sampled_from((True, *[False] * 9)))
    def reset(self, now: bool) -> None:
        if now:
            step = self.ask("reset")
            self.agree(step, self.call("reset"))


class LedgerLockstep(Lockstep):
    system = ledger()
    manager_class = EncoderCacheManager

    def held(self) -> frozenset[tuple[str]]:
        return frozenset(self.state["held"])

    def freeable_slots(self) -> int:
        return int(self.state["freeable_slots"])

    def compare(self) -> None:
        super().compare()
        state, manager = self.state, self.manager
        assert manager.cached == {
            h: {r for k, r in state["references"] if k == h} for (h,) in state["cached"]
        }
        oldest_first = sorted((h for (h,) in state["freeable"]), key=state["since"].__getitem__)
        assert list(manager.freeable.items()) == [(h, self.sizes[h]) for h in oldest_first]
        assert set(manager.freed) == {h for (h,) in state["freed"]}
        for i, h in self.hash_of.items():
            size = self.sizes[h] if (h,) in state["cached"] else None
            assert manager.get_cached_num_encoder_embeds(*self.at(i)) == size

    def charge(self, i: str) -> None:
        resident = (self.hash_of[i],) in self.state["cached"]
        step = self.ask("allocate_again" if resident else "allocate", input=i)
        if not step.refused_by:
            self.agree(step, self.call("allocate", *self.at(i)))
            return
        assert step.refused_by == ("room",)
        if resident:
            hit = self.ask("check_and_update_cache", input=i)
            assert hit.result is True
            self.manager.allocate(*self.at(i))
            self.compare()
        else:
            self.refused(NoRoomError, self.manager.allocate, *self.at(i))

    @rule(i=inputs, more=st.sampled_from((1, -1)))
    def allocate_with_another_size(self, i: str, more: int) -> None:
        """In the spec's world a hash has one size; the reference refuses what is not of it."""
        request, position = self.at(i)
        items = list(request.mm_features)
        items[position] = Item(self.hash_of[i], self.sizes[self.hash_of[i]] + more)
        changed = Request(request.request_id, tuple(items))
        if (self.hash_of[i],) in self.state["cached"]:
            self.refused(SizeChangedError, self.manager.allocate, changed, position)
            self.compare()


class EncoderDecoderLockstep(Lockstep):
    system = encoder_decoder()
    manager_class = EncoderDecoderCacheManager
    ascending = False

    def held(self) -> frozenset[tuple[str]]:
        return frozenset(self.state["outstanding"])

    def freeable_slots(self) -> int:
        return int(self.state["free_slots"])

    def compare(self) -> None:
        super().compare()
        manager = self.manager
        assert isinstance(manager, EncoderDecoderCacheManager)
        assert set(manager.allocated) == {h for (h,) in self.state["allocated"]}
        assert set(manager.to_free) == {h for (h,) in self.state["to_free"]}
        assert manager.cached == manager.freeable == {}
        assert manager.freed == []

    def charge(self, i: str) -> None:
        step = self.ask("allocate", input=i)
        if not step.refused_by:
            self.agree(step, self.call("allocate", *self.at(i)))
        elif "not_charged_yet" in step.refused_by:
            self.refused(AlreadyAllocatedError, self.manager.allocate, *self.at(i))
        else:
            self.refused(NoRoomError, self.manager.allocate, *self.at(i))


@pytest.mark.parametrize("machine", [LedgerLockstep, EncoderDecoderLockstep])
def test_the_reference_does_what_the_spec_says(machine: type[Lockstep]) -> None:
    run_state_machine_as_test(machine, settings=LOCKSTEP)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [LedgerLockstep, EncoderDecoderLockstep])
def test_and_no_step_of_the_spec_breaks_a_clause(machine: type[Lockstep]) -> None:
    judged = type(f"{machine.__name__}Judged", (machine,), {"judges_every": 1})
    run_state_machine_as_test(judged, settings=LOCKSTEP)


# --- it can fail -------------------------------------------------------------------------------


def hunt(machine: type[Lockstep], examples: int = 1000, **changes: Any) -> None:
    changed = type(f"{machine.__name__}Changed", (machine,), {"judges_every": 0, **changes})
    run_state_machine_as_test(changed, settings=settings(HUNT, max_examples=examples))


@pytest.mark.parametrize(
    ("machine", "wrong"),
    first_of_each(
        [
            *((LedgerLockstep, cls) for cls in LEDGERS),
            *((EncoderDecoderLockstep, cls) for cls in ENCODER_DECODERS),
        ],
        lambda machine, cls: cls.clauses[:1],
    ),
    ids=lambda cls: "-".join((cls.__name__, *getattr(cls, "clauses", ()))),
)
def test_a_known_bad_manager_is_found(
    machine: type[Lockstep], wrong: type[EncoderCacheManager]
) -> None:
    with pytest.raises(AssertionError):
        hunt(machine, manager_class=wrong)


# --- it goes where it matters ------------------------------------------------------------------


@pytest.mark.slow
def test_the_random_runs_reach_every_kind_of_step() -> None:
    seen: Counter[str] = Counter()

    class Watched(LedgerLockstep):
        def ask(self, action: str, **arguments: Any) -> Step:
            step = super().ask(action, **arguments)
            before, after, result = step.before, step.after, step.result
            held = before["held"]
            mine = [i for (i,) in held if INPUTS[i][0] == arguments.get("request")]
            repeated = len(mine) > len({self.hash_of[i] for i in mine})
            notes = {
                "refused for want of room": "room" in step.refused_by,
                "hit on a freeable hash": result is True
                and before["freeable"] != after["freeable"],
                "several evicted at once": len(after["freed"]) > len(before["freed"]) + 1,
                "evicted again before the report": action == "can_allocate"
                and before["freed"] & before["cached"] - after["cached"],
                "a report that had to be filtered": action == "get_freed_mm_hashes"
                and before["freed"] & before["cached"],
                "a position released, its hash still needed": action == "free_encoder_input"
                and len(held) > len(after["held"])
                and before["references"] == after["references"],
                "a request freed with a repeated hash": action == "free" and repeated,
                "several freeable at once": len(after["freeable"]) > len(before["freeable"]) + 1,
                "reset with a report pending": action == "reset" and before["freed"],
            }
            seen.update(note for note, true in notes.items() if true)
            return step

    # Hypothesis draws constants of the modules that are loaded, so it depends on the tests before.
    for examples in (60, 240, 1000):
        if len(seen) < 9:
            hunt(Watched, examples=examples)
    assert len(seen) == 9, seen
