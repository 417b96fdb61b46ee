"""`differ` finds what is wrong, makes it short, and says nothing of what is right."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from random import Random
from typing import ClassVar

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner, Result

from mmcache import EncoderCacheManager
from mmcache_conformance.cli import cli
from mmcache_conformance.differ.decisions import explained_by
from mmcache_conformance.differ.report import DifferReport
from mmcache_conformance.differ.search import Campaign, Done, search
from mmcache_conformance.differ.shrink import Candidate, Shrunk, shrink, without_parts
from mmcache_conformance.differ.walks import CompiledShape, WalkedWorld
from mmcache_conformance.differ.worlds import Largest, draw_parameters, draw_shape
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.targets.protocol import ALLOCATE_AGAIN, CALLS, OBSERVABLES, Answer
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.oracle import Replay
from mmcache_vectors.document import schema_of
from mmcache_vectors.manager import Expect, GetFreedMmHashes, Manager, Parameters, Reset, load
from tests.known_bad.managers import ENCODER_DECODERS, LEDGERS, UnfilteredReport
from tests.support.drivers import MISBEHAVES

HERE = "tests.known_bad.managers"


def differ(*words: str) -> Result:
    return CliRunner().invoke(cli, ["differ", *words])


def found_by(target: str) -> Done:
    """Units until something is found."""
    campaign = Campaign(target, shrinks=False)
    done = Done(0, 0, 0, 0)
    for unit in range(12):
        done = search(campaign, unit)
        if done.finding is not None:
            break
    return done


class Shares(EncoderCacheManager):
    """Managers share what was evicted, and nothing empties it."""

    freed: ClassVar[list[str]] = []  # type: ignore[misc]

    def reset(self) -> None:
        kept = type(self).freed
        super().reset()
        del self.__dict__["freed"]
        type(self).freed = kept

    def get_freed_mm_hashes(self) -> list[str]:
        told = [h for h in dict.fromkeys(type(self).freed) if h not in self.cached]
        type(self).freed = []
        return told


# --- the specified side ------------------------------------------------------------------------


@pytest.mark.parametrize("manager", ["encoder_cache", "encoder_decoder"])
def test_a_walk_expects_what_the_interpreter_answers(manager: Manager) -> None:
    random = Random(f"walks {manager}")
    capabilities = frozenset({*CALLS, ALLOCATE_AGAIN})
    shown = frozenset(OBSERVABLES if manager == "encoder_cache" else {"num_free_slots"})
    twins = 0
    for k in range(12):
        largest = Largest(4, 3, 6) if k < 9 else Largest()
        shape = CompiledShape(draw_shape(random, manager, largest), capabilities)
        for _ in range(4):
            parameters = draw_parameters(random, shape.shape)
            twins += _has_twins(parameters)
            world = WalkedWorld(shape, parameters, shown)
            for _ in range(3):
                replay = Replay(specified(manager), parameters)
                for edge in world.walk(random, 12):
                    expected = Expect(edge.returns, edge.observed)
                    assert replay.answer(edge.call) == expected
    assert twins, "one identifier with two sizes occurs"


def _has_twins(parameters: Parameters) -> bool:
    items = {item for r in parameters.requests for item in r.items}
    return len({item.identifier for item in items}) < len(items)


def test_worlds_are_large_and_of_every_kind() -> None:
    random = Random(1)
    shapes = [draw_shape(random, "encoder_cache") for _ in range(200)]
    assert max(s.hashes for s in shapes) == 8
    assert max(len(s.requests) for s in shapes) == 6
    assert max(sum(map(len, s.requests)) for s in shapes) == 12
    worlds = [draw_parameters(random, s) for s in shapes for _ in range(3)]
    items = [i for w in worlds for r in w.requests for i in r.items]
    assert any(i.num_embeds > 1 << 32 and i.num_embeds % 2 for i in items)
    assert any(len(i.identifier) > 128 for i in items)
    assert any(w.cache_size > 1 << 32 for w in worlds)
    assert any(i.num_embeds == 0 for i in items)


# --- what is right, and what is wrong -----------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_nothing_differs_on_the_reference(seed: int) -> None:
    for unit in range(4):
        done = search(Campaign("reference", seed), unit, 256)
        assert done.finding is None
        assert done.sequences == 256


@pytest.mark.parametrize(
    "name",
    [f"{HERE}:{cls.__name__}" for cls in LEDGERS if cls.clauses]
    + [f"mmcache:EncoderCacheManager,{HERE}:{cls.__name__}" for cls in ENCODER_DECODERS],
)
def test_every_known_bad_manager_is_found(name: str) -> None:
    assert found_by(name).finding is not None


def test_what_is_found_is_short_and_its_decision_is_named() -> None:
    report = _report("differ", f"{HERE}:{UnfilteredReport.__name__}", "--count", "2000")
    (finding,) = report.findings
    assert finding.decisions == ("unfiltered_report",)
    assert finding.clauses == ("L1",)
    expected = VARIANTS["unfiltered_report"].expected
    assert expected is not None
    assert len(finding.vector.steps) == len(expected.from_init)
    assert finding.calls_at_first >= len(finding.vector.steps)
    assert "unfiltered_report" in finding.vector.kills
    assert {len(i.identifier) for r in finding.vector.parameters.requests for i in r.items} == {1}


def test_no_decision_explains_what_no_variant_does() -> None:
    report = _report("differ", f"{HERE}:EvictsOneTooMany", "--count", "2000")
    (finding,) = report.findings
    assert finding.decisions == ()
    assert "L6" in finding.clauses


def test_a_right_answer_is_explained_by_no_difference() -> None:
    parameters = Parameters(1, ())
    calls = (GetFreedMmHashes(),)
    wrong = (Answer(("A",)),)
    assert explained_by("encoder_cache", parameters, calls, wrong) == ()


def test_managers_that_share_are_found_and_what_was_before_is_told() -> None:
    campaign = Campaign(f"{__name__}:Shares", 3)
    finding = next(
        f for unit in range(4) if (f := search(campaign, unit, 1000).finding) is not None
    )
    assert finding is not None


def test_a_target_that_breaks_down_costs_its_own_sequence_only() -> None:
    command = shlex.join([sys.executable, str(MISBEHAVES), "exits"])
    done = found_by(f"cmd:{command}")
    assert done.finding is not None
    assert "broke down" in str(done.finding.differences[0].got)


# --- shrinking ---------------------------------------------------------------------------------


def test_shrinking_ends_at_the_least() -> None:
    parameters = Parameters(5, ())
    calls = tuple([GetFreedMmHashes()] * 9 + [Reset()] + [GetFreedMmHashes()] * 6)

    def probe(candidate: Candidate) -> Shrunk[str] | None:
        return Shrunk(candidate, "reset") if Reset() in candidate.calls else None

    least = shrink(Shrunk(Candidate(parameters, calls), "reset"), probe)
    assert least.candidate == Candidate(Parameters(0, ()), (Reset(),))


def test_parts_are_left_out_down_to_single_ones() -> None:
    assert list(without_parts((1, 2, 3, 4))) == [
        (1, 2), (3, 4), (1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4),
    ]  # fmt: skip
    assert list(without_parts((1, 2))) == [(1,), (2,)]


# --- the command -------------------------------------------------------------------------------


def _report(*words: str) -> DifferReport:
    done = CliRunner().invoke(cli, [*words, "--json"])
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of(DifferReport, "differ"))
    return msgspec.convert(document, DifferReport)


def test_the_same_seed_plays_the_same() -> None:
    def told(seed: str) -> DifferReport:
        report = _report("differ", f"{HERE}:EvictsTheNewest", "--count", "2500", "--seed", seed)
        return msgspec.structs.replace(report, seconds=0.0)

    first = told("1")
    assert first == told("1")
    assert first.findings
    assert first.exit_code == ExitCode.FAILED
    assert first.findings[0].sequence != told("2").findings[0].sequence


def test_the_report_for_people_begins_with_the_decision() -> None:
    done = differ(f"{HERE}:{UnfilteredReport.__name__}", "--count", "1000")
    assert done.exit_code == 1
    _, first, *_ = done.stdout.splitlines()
    assert first.startswith("DECISION unfiltered_report (vllm#52482)")
    assert "sequences/s" in done.stdout


def test_what_is_saved_is_a_vector_that_fails(tmp_path: Path) -> None:
    name = f"{HERE}:{UnfilteredReport.__name__}"
    folder = tmp_path / "found"
    for _ in range(2):  # twice the same is no trouble
        assert differ(name, "--count", "1000", "--save", str(folder)).exit_code == 1
    (path,) = folder.glob("*.json")
    assert load(path).id == path.stem
    run = CliRunner().invoke(cli, ["run", name, "--vectors", str(folder), "-q"])
    assert run.exit_code == 1
    assert CliRunner().invoke(cli, ["run", "--vectors", str(folder), "-q"]).exit_code == 0
    path.write_text("{}")
    again = differ(name, "--count", "1000", "--save", str(folder))
    assert again.exit_code == 2
    assert "not overwritten" in again.output
    assert path.read_text() == "{}"


def test_known_faults_are_passed_over_and_others_are_not(tmp_path: Path) -> None:
    listed = tmp_path / "expected.toml"
    listed.write_text(
        'format = "mmcache/expected-failures"\nformat_version = 1\n'
        '[[expected]]\nclause = "L1"\nreason = "known"\nlink = "https://example.org/1"\n'
    )
    name = f"{HERE}:{UnfilteredReport.__name__}"
    done = differ(name, "--count", "1500", "--expected", str(listed))
    assert done.exit_code == 0, done.output
    assert "differ as expected" in done.output
    other = differ(f"{HERE}:EvictsOneTooMany", "--count", "1500", "--expected", str(listed))
    assert other.exit_code == 1


def test_it_goes_on_to_other_kinds_of_difference() -> None:
    report = _report(
        "differ", f"{HERE}:NothingIsEverReported", "--count", "1500", "--findings", "3"
    )
    assert report.findings[0].decisions == ("report_nothing",)
    assert len(report.findings) == 1, "all of it is one decision"


def test_several_processes_find_the_same() -> None:
    words = ("differ", f"{HERE}:EvictsOneTooMany", "--count", "1500")
    alone, together = _report(*words), _report(*words, "--jobs", "2")
    assert [f.vector for f in alone.findings] == [f.vector for f in together.findings]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("nonsense",), 2, "does not name a target"),
        (("cmd:/no/such/program",), 3, "cannot be run"),
        (("no_such_module:Class",), 3, "could not be played on"),
        (("reference", "--count", "0"), 2, "--count"),
        (("reference", "--expected", "no-such-file.toml"), 2, "no-such-file.toml"),
        (("reference", "--count", "5", "--cluster", "tcp://127.0.0.1:1"), 3, "luster"),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], code: int, says: str) -> None:
    done = differ(*words)
    assert done.exit_code == code
    assert says in done.output
    assert "Traceback" not in done.output
