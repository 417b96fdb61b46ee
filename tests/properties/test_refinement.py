"""Every run of the reference engine is a run of the specification, decision by decision.

The reference tells what it decided; the interpreter of the specified engine takes the same
actions. Compared are every answer, and after every pass the ledger, the worker, what is ordered
and what is gathered. Here the abstraction of the specification meets something that counts tokens
and blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from mmcache_conformance.engines.protocol import engine_case
from mmcache_conformance.engines.random import random_workload
from mmcache_conformance.engines.reference import REFERENCE_VARIANTS, ReferenceRun
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, State, World
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model.variants import SPECIFIED, VARIANTS
from mmcache_spec.oracle import input_name, world_of
from mmcache_vectors.engine import EngineVector, WorkloadRequest
from mmcache_vectors.manager import Item, Parameters, Request

ENGINE = next(s for s in SPECIFIED.systems if s.name == "engine")
PLENTY = 1 << 20


def _parameters(vector: EngineVector) -> Parameters:
    return Parameters(
        vector.engine.cache_size,
        tuple(
            Request(r.request_id, tuple(Item(i.identifier, i.num_embeds) for i in r.items))
            for r in vector.requests
        ),
    )


def _world(vector: EngineVector) -> World:
    """The spec's world for a workload, with its tokens."""
    world = world_of(_parameters(vector))
    items = {
        input_name(r.request_id, k): item for r in vector.requests for k, item in enumerate(r.items)
    }
    return World(
        world.universe,
        {**world.constants, "lookahead": vector.engine.lookahead},
        {
            **world.functions,
            "first_token": {i: item.position for i, item in items.items()},
            "num_tokens": {i: item.num_embeds for i, item in items.items()},
            "tokens_of": {
                r.request_id: r.num_prompt_tokens + r.max_tokens for r in vector.requests
            },
            "rank": {r: k for k, r in enumerate(sorted(world.universe["Request"]))},
        },
    )


class Follower:
    """The specification, led by the decisions of the reference."""

    def __init__(self, system: TransitionSystem, vector: EngineVector) -> None:
        self.world = _world(vector)
        self.interpreter = Interpreter(system, self.world)
        self.state: State = self.interpreter.initial()
        self.used: Counter[str] = Counter()

    def call(self, action: str, **arguments: Any) -> Any:
        step = self.interpreter.call(self.state, ActionCall(action, arguments))
        assert not step.refused_by, (action, arguments, step.refused_by)
        self.used[action] += 1
        self.state = step.after
        return step.result

    def follow(self, action: str, request: str, number: int) -> frozenset[str] | None:
        """Take one decision, about an input or a number of tokens. Gives a dispatch's report."""
        if action in {"look_up", "admit"}:
            budget = {"encoder_compute_budget": PLENTY} if action == "admit" else {}
            assert self.call(action, input=input_name(request, number), **budget) is True
        elif action in {"commit", "consume"}:
            self.call(action, input=input_name(request, number))
        elif action == "prefix_hit":
            self.call(action, request=request, num_computed_tokens=number)
        elif action == "schedule":
            self.call(action, request=request, num_new_tokens=number)
        elif action in {"defer", "give_back", "skip_waiting"}:
            # A request that came to nothing before it looked anything up was never current.
            if (request,) in self.state["current"]:
                self.call(action, request=request)
        elif action == "dispatch":
            return self._dispatch()
        elif action == "reset":
            self.call("reset")
        else:
            self.call(action, request=request)
        return None

    def _dispatch(self) -> frozenset[str]:
        if not self.state["in_pass"]:
            return frozenset()
        report = self.call("dispatch")
        for (r,) in sorted(self.state["running"]):
            computed, confirmed = self.state["computed"][r], self.state["confirmed"][r]
            if confirmed < computed:
                self.call("accept", request=r, num_computed_tokens=computed)
        return frozenset(h for (h,) in report)

    def hashes(self, name: str) -> set[str]:
        return {element[0] for element in self.state[name]}


def _lockstep(system: TransitionSystem, variant: str, vector: EngineVector) -> Counter[str]:
    follower = Follower(system, vector)
    run = ReferenceRun(REFERENCE_VARIANTS[variant], engine_case(vector))
    told = 0
    while run.number < vector.expect.max_passes and not run.over:
        record = run.step()
        # What the update has done is told with the next output; here it is wanted now.
        decisions = [*run.decisions, *run.scheduler._log]
        for action, request, number in decisions[told:]:
            before = follower.state
            report = follower.follow(action, request, number)
            if action != "dispatch":
                continue
            assert report == frozenset(record.report)
            assert follower.hashes("cached") == set(record.cached)
            if record.without_payload:
                # S8 is broken. The specification stops at that; the worker encodes nothing.
                return follower.used
            assert follower.hashes("worker") == set(record.worker)
            ordered = {
                (i.identifier, r)
                for r, ids in record.scheduled_encoder_inputs.items()
                for k in ids
                for i in [_request(vector, r).items[k]]
            }
            assert set(before["encodes"]) == ordered
            hash_of = follower.world.functions["hash_of"]
            assert {hash_of[i] for (i,) in before["promised"]} == set(record.gathered)
            assert {r for (r,) in before["scheduled"]} == set(record.num_scheduled_tokens)
        told = len(decisions)
        references = {(h, r) for h, rs in record.references.items() for r in rs}
        assert set(follower.state["references"]) == references
    return follower.used


def _request(vector: EngineVector, request_id: str) -> WorkloadRequest:
    return next(r for r in vector.requests if r.request_id == request_id)


@pytest.mark.parametrize("vector", load_suite(None, ENGINES), ids=lambda v: v.id)
def test_vectors(vector: EngineVector) -> None:
    _lockstep(ENGINE, "specified", vector)


def _drafting(vector: EngineVector, seed: int) -> EngineVector:
    """The same workload, read further by a drafter, perhaps with items that are computed whole."""
    engine = msgspec.structs.replace(vector.engine, lookahead=seed % 3, chunked_items=seed % 5 != 0)
    return msgspec.structs.replace(vector, engine=engine)


FEW = (*range(12), 30)
"""Together they come to every decision; a request is skipped in the last."""


@pytest.mark.parametrize(
    "seeds", [FEW, pytest.param(range(60), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_random_workloads(seeds: Sequence[int]) -> None:
    used: Counter[str] = Counter()
    for seed in seeds:
        used += _lockstep(ENGINE, "specified", _drafting(random_workload(seed), seed))
    everything = {a.name for a in ENGINE.actions}
    # The reference has neither a connector nor drafts that can be rejected.
    assert everything - set(used) <= {"commit_load", "reject", "defer"}


@pytest.mark.parametrize("variant", [v for v in REFERENCE_VARIANTS if v != "specified"])
def test_a_switch_of_the_reference_is_the_switch_of_the_specification(variant: str) -> None:
    """Each variant of the reference follows its namesake, also into its mistakes."""
    system = VARIANTS[variant].system
    for vector in load_suite(None, ENGINES):
        _lockstep(system, variant, vector)
    for seed in (19, 73, 99):
        _lockstep(system, variant, _drafting(random_workload(seed), seed))


@pytest.mark.parametrize(
    ("variant", "begins"),
    [
        ("preemption_keeps_unencoded_entry", "phantom-entry-same-pass"),
        ("preemption_undoes_shared_entry", "phantom-entry-same-pass"),
        ("waiting_keeps_references", "waiting-keeps-references"),
        ("unfiltered_drop_encode_gather", "reallocated-then-dropped"),
        ("retain_everything", "retain-everything"),
    ],
)
def test_and_of_no_other(variant: str, begins: str) -> None:
    """S1, S2, S3, S5: a switch that breaks one is seen beside the specification that keeps it."""
    (vector,) = (v for v in load_suite(None, ENGINES) if v.id.startswith(begins))
    with pytest.raises(AssertionError):
        _lockstep(ENGINE, variant, vector)
