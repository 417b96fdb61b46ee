"""Random sequences on pairs of processor caches: right ones differ nowhere, wrong are found."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.cli.schema import SCHEMAS
from mmcache_conformance.differ.pairs import (
    PairDifferReport,
    can_come,
    drawn_calls,
    drawn_world,
    run_pair_campaign,
    vector_of,
)
from mmcache_conformance.oracle.pair_decisions import model_answers
from mmcache_conformance.pairs.clauses import judge_pair
from mmcache_conformance.pairs.open import open_pair
from mmcache_spec.generate.pairs import design_of
from mmcache_spec.model.processor_cache import ProcessorCacheDesign
from mmcache_spec.model.processor_cache_variants import WRONG_PROCESSOR_CACHES
from mmcache_spec.pair import PairSystem
from mmcache_vectors.document import schema_of
from mmcache_vectors.pair import ClearReceiver, ClearSender, Deliver, ProcessRequest, Withdraw

ALL_CALLS = ("invalidate", "withdraw")
BAD = "tests.known_bad.pairs"
SENDER, RECEIVER = "mmcache.processor_cache:Sender", "mmcache.processor_cache:Receiver"


def differ(*words: object) -> Result:
    return CliRunner().invoke(cli, ["differ", "--in-process", *map(str, words)])


def campaign(name: str, count: int = 400, findings: int = 1, seed: int = 0) -> PairDifferReport:
    return run_pair_campaign(
        open_pair(name, in_process=True),
        seed=seed,
        calls=None,
        count=count,
        seconds=None,
        findings=findings,
    )


# --- what is drawn, and what is expected --------------------------------------------------------


def test_what_is_drawn_can_come_and_is_of_every_kind() -> None:
    chance = random.Random(1)
    kinds: set[type] = set()
    for _ in range(200):
        world = drawn_world(chance)
        calls = drawn_calls(chance, world, ALL_CALLS, 15)
        assert can_come(calls)
        kinds |= set(map(type, calls))
        vector_of(world, calls)
    assert len(kinds) == 6


@pytest.mark.parametrize("wrong", [
    (Deliver("r1"),),
    (ProcessRequest("r1"), ProcessRequest("r1")),
    (ProcessRequest("r1"), ProcessRequest("r2"), Deliver("r2")),
    (ProcessRequest("r1"), Withdraw("r1"), Withdraw("r1")),
    (ProcessRequest("r1"), Withdraw("r1"), ProcessRequest("r1")),
])  # fmt: skip
def test_what_cannot_come_is_known(wrong: tuple[Any, ...]) -> None:
    assert not can_come(wrong)
    assert can_come((*wrong[:-1], ClearSender(), ClearReceiver()))


def test_the_judge_accuses_no_pair_that_answers_as_is_specified() -> None:
    """P1 to P10, of what is specified, in sequences that nobody has chosen."""
    chance = random.Random(2)
    for _ in range(60):
        world = drawn_world(chance)
        for _ in range(5):
            vector = vector_of(world, drawn_calls(chance, world, ALL_CALLS, 16))
            wrong = judge_pair(vector, model_answers(ProcessorCacheDesign(), vector))
            assert wrong is None, (vector, wrong)


@pytest.mark.parametrize("name", [None, *(v.name for v in WRONG_PROCESSOR_CACHES[::4])])
def test_the_code_for_all_worlds_answers_as_the_interpreter(name: str | None) -> None:
    wrong = {v.name: v for v in WRONG_PROCESSOR_CACHES}
    design = ProcessorCacheDesign() if name is None else design_of(wrong[name])
    chance = random.Random(name)
    for _ in range(4):
        world = drawn_world(chance)
        calls = drawn_calls(chance, world, ALL_CALLS, 10)
        quick, slow = (PairSystem(world, design, judged=judged) for judged in (False, True))
        one, two = quick.initial(), slow.initial()
        for call in calls:
            answered, expected = quick.call(one, call), slow.call(two, call)
            assert (answered is None) is (expected is None)
            if answered is None or expected is None:
                break
            assert answered[0] == expected[0]
            one, two = answered[1], expected[1]
            assert quick.view(one) == slow.view(two)


# --- what is found ------------------------------------------------------------------------------


def test_nothing_differs_on_the_reference() -> None:
    report = campaign("reference-pair", 120)
    assert (report.exit_code, report.findings, report.sequences) == (0, (), 120)
    assert report.calls > 800


@pytest.mark.parametrize(
    ("sender", "receiver", "clause"),
    [
        (f"{BAD}:BareSender", RECEIVER, "P1"),
        (SENDER, f"{BAD}:UnorderedReceiver", "P2"),
        (SENDER, f"{BAD}:UnboundedReceiver", "P3"),
        (f"{BAD}:EagerSender", RECEIVER, "P4"),
        (f"{BAD}:LosingSender", RECEIVER, "P5"),
        (f"{BAD}:MuteSender", RECEIVER, "P6"),
        (SENDER, f"{BAD}:StaleReceiver", "P7"),
        (SENDER, f"{BAD}:CarelessReceiver", "P2"),
    ],
)
def test_a_wrong_pair_is_found_by_a_short_sequence(sender: str, receiver: str, clause: str) -> None:
    report = campaign(f"pair:{sender},{receiver}", 120, findings=3)
    assert report.exit_code == 1
    assert clause in {c for f in report.findings for c in f.clauses}
    for finding in report.findings:
        assert len(finding.vector.steps) <= min(8, finding.calls_at_first)
        assert finding.failure.step == len(finding.vector.steps) - 1


def test_the_decision_is_named() -> None:
    """P5."""
    (finding,) = campaign(f"pair:{BAD}:LosingSender,{RECEIVER}").findings
    assert "processor_rejected_is_lost" in finding.decisions
    assert len(finding.decisions) < 4


def test_the_same_seed_plays_the_same() -> None:
    one, two, other = (campaign(f"pair:{BAD}:EagerSender,{RECEIVER}", seed=s) for s in (3, 3, 4))
    assert [f.vector for f in one.findings] == [f.vector for f in two.findings]
    assert one.sequences == two.sequences
    assert (one.calls, one.sequences) != (other.calls, other.sequences)


# --- the command --------------------------------------------------------------------------------


def test_what_is_saved_is_a_vector_that_fails(tmp_path: Path) -> None:
    """P5."""
    name = f"pair:{BAD}:LosingSender,{RECEIVER}"
    done = differ(name, "--save", tmp_path, "--count", 200)
    assert done.exit_code == 1, done.output
    assert "P5 recorded_is_delivered_or_undone" in done.output
    assert "saved: " in done.output
    for target, code in ((name, 1), ("reference-pair", 0)):
        words = ["run", "--plain", "--in-process", target, "--vectors", str(tmp_path)]
        assert CliRunner().invoke(cli, words).exit_code == code


def test_what_json_prints_is_what_its_schema_says() -> None:
    done = differ(f"pair:{BAD}:MuteSender,{RECEIVER}", "--json", "--count", 200)
    assert done.exit_code == 1
    assert SCHEMAS["differ-pair"][1] == "PairDifferReport"
    jsonschema.Draft202012Validator(schema_of(PairDifferReport, "x")).validate(
        json.loads(done.stdout)
    )


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("reference-pair", "--jobs", "2"), 2, "--jobs is for managers, and reference-pair is a"),
        (("reference-pair", "--cluster", "x"), 2, "--cluster is for managers"),
        (("pair:one",), 2, "give two classes"),
        (("pair:nowhere:A,nowhere:B", "--count", "1"), 3, "nowhere:A"),
        (("reference-pair", "--count", "3"), 0, "nothing differs"),
    ],
)
def test_the_command(words: tuple[str, ...], code: int, says: str) -> None:
    done = differ(*words)
    assert done.exit_code == code, done.output
    assert says in done.output
    assert "Traceback" not in done.output
