"""`differ` finds what is wrong, makes it short, and says nothing of what is right."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from random import Random
from typing import ClassVar
from unicodedata import normalize
from zlib import adler32, crc32

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner, Result

from mmcache import EncoderCacheManager
from mmcache.request import Request
from mmcache_conformance.cli import cli
from mmcache_conformance.differ.report import DifferReport
from mmcache_conformance.differ.search import Campaign, Done, search
from mmcache_conformance.differ.shrink import Candidate, Shrunk, shrink, without_parts
from mmcache_conformance.differ.units import plan_of
from mmcache_conformance.differ.walks import Edge, WalkedWorld
from mmcache_conformance.differ.worlds import (
    Largest,
    draw_parameters,
    draw_shape,
    in_one_line,
)
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.oracle.decisions import agreeing
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.targets.protocol import ALLOCATE_AGAIN, CALLS, OBSERVABLES, Answer
from mmcache_conformance.verdicts.changes import LARGEST_NUMBER, SAFE_NUMBER, largest_number
from mmcache_conformance.verdicts.names import STYLES, Style, draw_names
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.oracle import Replay
from mmcache_vectors import manager as api
from mmcache_vectors.document import schema_of
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Expect,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Manager,
    Observed,
    Parameters,
    Reset,
    load,
)
from tests.known_bad.managers import ENCODER_DECODERS, LEDGERS, UnfilteredReport
from tests.support.drivers import MISBEHAVES
from tests.support.quick import first_of_each

HERE = "tests.known_bad.managers"
MASK = 0xFFFFFFFF


def differ(*words: str) -> Result:
    return CliRunner().invoke(cli, ["differ", *words])


def found_by(target: str) -> Done:
    """Units until something is found."""
    campaign = Campaign(target, shrinks=False, in_process=not target.startswith("cmd:"))
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
        shape = draw_shape(random, largest)
        for _ in range(4):
            parameters = draw_parameters(random, shape)
            twins += _has_twins(parameters)
            world = WalkedWorld(manager, parameters, capabilities, shown)
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
    shapes = [draw_shape(random) for _ in range(200)]
    assert max(s.hashes for s in shapes) == 8
    assert max(sum(map(bool, s.requests)) for s in shapes) == 6
    assert any(() in s.requests for s in shapes), "some requests carry nothing"
    assert max(sum(map(len, s.requests)) for s in shapes) == 12
    worlds = [draw_parameters(random, s) for s in shapes for _ in range(3)]
    items = [i for w in worlds for r in w.requests for i in r.items]
    assert any(i.num_embeds > 1 << 32 and i.num_embeds % 2 for i in items)
    assert any(len(i.identifier) > 128 for i in items)
    assert any(w.cache_size > 1 << 32 for w in worlds)
    assert any(i.num_embeds == 0 for i in items)


def test_the_numbers_of_a_world_stay_where_its_engine_has_them_exactly() -> None:
    random = Random(2)
    for most in (SAFE_NUMBER, LARGEST_NUMBER):
        worlds = [draw_parameters(random, draw_shape(random), most) for _ in range(400)]
        for world in worlds:
            sizes = {i.identifier: i.num_embeds for r in world.requests for i in r.items}
            # A question may be about one more than all that can be free.
            assert world.cache_size + 1 < most
            assert max(sizes.values()) <= most
        # Half of the largest is passed: so the counter one bit narrower is tried.
        assert any(world.cache_size > most // 2 - 64 for world in worlds)
    assert largest_number("javascript") == SAFE_NUMBER
    assert largest_number("C++") == LARGEST_NUMBER


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.__qualname__)
@pytest.mark.parametrize("number", [1, 8, 40])
def test_the_names_of_one_draw_are_distinct(style: Style, number: int) -> None:
    names = draw_names(Random(3), number, style)
    assert len(set(names)) == len(names) == number
    assert all(names)
    assert all(json.loads(msgspec.json.encode(name)) == name for name in names)


def test_there_are_names_that_a_careless_key_takes_for_one_another() -> None:
    """Each key is one that engines use; two names of one draw have the same."""
    keys: dict[str, Callable[[str], object]] = {
        "32 bits of CRC": lambda name: crc32(name.encode()),
        "polynomial of 31": lambda name: reduce(
            lambda n, c: n * 31 + c & 0xFFFFFFFF, name.encode(), 0
        ),
        "polynomial of 33": lambda name: reduce(
            lambda n, c: n * 33 + c & 0xFFFFFFFF, name.encode(), 5381
        ),
        "sum": lambda name: sum(name.encode()),
        "Adler": lambda name: adler32(name.encode()),
        "C text": lambda name: name.split("\0")[0],
        "ASCII": lambda name: name.encode("ascii", "replace"),
        "normalised": lambda name: normalize("NFC", name),
        "compatible": lambda name: normalize("NFKC", name),
        "case": str.casefold,
        "trimmed": str.strip,
        "number": lambda name: float(name) if name.replace(".", "").isdecimal() else name,
        "path": lambda name: name.split("/")[-1],
        "first 64": lambda name: name[:64],
        "first 512": lambda name: name[:512],
        "last 32": lambda name: name[-32:],
        "first character": lambda name: name[0],
        "length": len,
    }
    random = Random(4)
    draws = [draw_names(random, 12, style) for style in STYLES for _ in range(12)]
    for says, key in keys.items():
        assert any(len(set(map(key, names))) < len(names) for names in draws), says


def test_ids_of_requests_can_be_the_beginning_of_others() -> None:
    random = Random(5)
    shape = draw_shape(random, Largest(4, 4, 8, full=True))
    ids = [[r.request_id for r in draw_parameters(random, shape).requests] for _ in range(100)]
    assert any(a != b and b.startswith(a) for some in ids for a in some for b in some)


def test_walks_lead_into_situations() -> None:
    """Over the walks of the first units; a walk of single calls comes to few of these."""
    wanted = {
        "exactly full",
        "all is idle",
        "four idle",
        "three evictions in one call",
        "a report of three",
        "a hit again ten times",
        "the same question, other answer",
        "three users",
        "four positions of one request",
        "reset with something held, and a release after it",
        "a request ends twice",
        "an id comes back",
        "more than 256 calls",
    }
    seen: set[str] = set()
    random = Random(7)
    capabilities = frozenset({*CALLS, ALLOCATE_AGAIN})
    for unit in (4, 6, 6, 6, 7, 8, 12, 10, 6, 8, 10, 12):
        if wanted <= seen:
            break
        plan = plan_of(unit)
        shown = frozenset(OBSERVABLES)
        for _ in range(6):
            parameters = draw_parameters(random, draw_shape(random, plan.largest))
            world = WalkedWorld("encoder_cache", parameters, capabilities, shown)
            for _ in range(4):
                seen |= _situations(list(world.walk(random, random.choice(plan.calls))))
    assert wanted <= seen, wanted - seen


def _situations(edges: list[Edge]) -> set[str]:
    """What a walk has come to, by what it must answer and show."""
    seen: set[str] = {"more than 256 calls"} if len(edges) > 256 else set()
    answers: dict[Call, set[object]] = {}
    before = Observed(cached={}, freeable=(), held={})
    ended: dict[str, int] = {}
    hits, late = 0, False
    for edge in edges:
        call, now = edge.call, edge.observed
        assert now.cached is not None
        assert now.freeable is not None
        assert now.held is not None
        assert before.cached is not None
        assert before.held is not None
        if now.num_free_slots == 0 and now.cached:
            seen.add("exactly full")
        if len(now.freeable) >= 2 and len(now.freeable) == len(now.cached):
            seen.add("all is idle")
        if len(now.freeable) >= 4:
            seen.add("four idle")
        if isinstance(call, CanAllocate):
            if len(before.cached) - len(now.cached) >= 3:
                seen.add("three evictions in one call")
            given = answers.setdefault(call, set())
            given.add(edge.returns)
            if len(given) == 2:
                seen.add("the same question, other answer")
        if isinstance(edge.returns, tuple) and len(edge.returns) >= 3:
            seen.add("a report of three")
        hits = hits + 1 if isinstance(call, CheckAndUpdateCache) and edge.returns else 0
        if hits >= 10:
            seen.add("a hit again ten times")
        if any(len(users) >= 3 for users in now.cached.values()):
            seen.add("three users")
        if any(len(places) >= 4 for places in now.held.values()):
            seen.add("four positions of one request")
        if late and isinstance(call, FreeEncoderInput):
            seen.add("reset with something held, and a release after it")
        late = isinstance(call, Reset) and bool(before.held)
        if isinstance(call, Free):
            if ended.get(call.request) == len(before.held.get(call.request, ())) == 0:
                seen.add("a request ends twice")
            ended[call.request] = 0
        elif isinstance(call, Allocate) and call.request in ended:
            seen.add("an id comes back")
        before = now
    return seen


# --- what is right, and what is wrong -----------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_nothing_differs_on_the_reference(seed: int) -> None:
    for unit in range(4):
        done = search(Campaign("reference", seed), unit, 256)
        assert done.finding is None
        assert done.sequences == 256


@pytest.mark.parametrize(
    ("name", "clause"),
    first_of_each(
        [(f"{HERE}:{cls.__name__}", cls.clauses[0]) for cls in LEDGERS if cls.clauses]
        + [
            (f"mmcache:EncoderCacheManager,{HERE}:{cls.__name__}", cls.clauses[0])
            for cls in ENCODER_DECODERS
        ],
        lambda name, clause: clause,
    ),
)
def test_every_known_bad_manager_is_found(name: str, clause: str) -> None:
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
    report = _report("differ", f"{HERE}:EvictsOneTooMany", "--count", "2000", "--in-process")
    (finding,) = report.findings
    assert finding.decisions == ()
    assert "L6" in finding.clauses


def test_a_right_answer_is_explained_by_no_difference() -> None:
    parameters = Parameters(1, ())
    calls = (GetFreedMmHashes(),)
    wrong = (Answer(("A",)),)
    assert agreeing("encoder_cache", parameters, calls, wrong) == ()


def test_managers_that_share_are_found_and_what_was_before_is_told() -> None:
    campaign = Campaign(f"{__name__}:Shares", 3, in_process=True)
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
        words = ("--count", "1000", "--seed", seed, "--in-process")
        report = _report("differ", f"{HERE}:{UnfilteredReport.__name__}", *words)
        return msgspec.structs.replace(report, seconds=0.0)

    first = told("1")
    assert first == told("1")
    assert first.findings
    assert first.exit_code == ExitCode.FAILED
    assert first.findings[0].sequence != told("2").findings[0].sequence


def test_the_report_for_people_begins_with_the_decision() -> None:
    """L1 is broken, by that decision."""
    done = differ(f"{HERE}:{UnfilteredReport.__name__}", "--count", "1000", "--in-process")
    assert done.exit_code == 1
    _, first, *_ = done.stdout.splitlines()
    assert first.startswith("DECISION unfiltered_report (vllm#52482)")
    assert "sequences/s" in done.stdout


def test_what_is_saved_is_a_vector_that_fails(tmp_path: Path) -> None:
    """L1 is broken whenever it is played."""
    name = f"{HERE}:{UnfilteredReport.__name__}"
    folder = tmp_path / "found"
    words = (name, "--count", "1000", "--in-process", "--save", str(folder))
    for _ in range(2):  # twice the same is no trouble
        assert differ(*words).exit_code == 1
    (path,) = folder.glob("*.json")
    assert load(path).id == path.stem
    run = CliRunner().invoke(cli, ["run", name, "--vectors", str(folder), "-q"])
    assert run.exit_code == 1
    assert CliRunner().invoke(cli, ["run", "--vectors", str(folder), "-q"]).exit_code == 0
    path.write_text("{}")
    again = differ(*words)
    assert again.exit_code == 3
    assert "not overwritten" in again.output
    assert "unfiltered_report" in again.output  # what was found is told all the same
    assert path.read_text() == "{}"


def test_known_faults_are_passed_over_and_others_are_not(tmp_path: Path) -> None:
    listed = tmp_path / "expected.toml"
    listed.write_text(
        'format = "mmcache/expected-failures"\nformat_version = 1\n'
        '[[expected]]\nclause = "L1"\nreason = "known"\nlink = "https://example.org/1"\n'
    )
    name = f"{HERE}:{UnfilteredReport.__name__}"
    few = ("--count", "1000", "--in-process", "--expected", str(listed))
    done = differ(name, *few)
    assert done.exit_code == 0, done.output
    assert "differ as expected" in done.output
    other = differ(f"{HERE}:EvictsOneTooMany", *few)
    assert other.exit_code == 1


def test_it_goes_on_to_other_kinds_of_difference() -> None:
    """L2 is broken in many ways by one decision."""
    words = ("--count", "1000", "--findings", "3", "--in-process")
    report = _report("differ", f"{HERE}:NothingIsEverReported", *words)
    assert report.findings[0].decisions == ("report_nothing",)
    assert len(report.findings) == 1, "all of it is one decision"


class OneDefect(EncoderCacheManager):
    """Nothing is admitted beside what is promised already."""

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_embeds_to_schedule: int,
    ) -> bool:
        if num_embeds_to_schedule:
            return False
        return super().can_allocate(request, input_id, encoder_compute_budget, 0)


class TwoDefects(OneDefect):
    """Nor is anything after a reset: the same answer is wrong in the same way."""

    was_reset = False

    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)
        self.was_reset = False

    def reset(self) -> None:
        super().reset()
        self.was_reset = True

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_embeds_to_schedule: int,
    ) -> bool:
        return not self.was_reset and super().can_allocate(
            request, input_id, encoder_compute_budget, num_embeds_to_schedule
        )


@pytest.mark.slow
@pytest.mark.parametrize(("manager", "findings"), [(OneDefect, 1), (TwoDefects, 2)])
def test_two_defects_of_one_signature_are_two_findings(manager: type, findings: int) -> None:
    target = f"{__name__}:{manager.__name__}"
    report = _report("differ", target, "--count", "900", "--findings", "3")
    assert len(report.findings) == findings
    assert report.known
    for finding in report.findings:
        (difference,) = finding.differences
        assert (difference.what, difference.got) == ("returns", False)
    resets = [any(isinstance(s.call, Reset) for s in f.vector.steps) for f in report.findings]
    assert sum(resets) == findings - 1


def test_several_processes_find_the_same() -> None:
    words = ("differ", f"{HERE}:EvictsOneTooMany", "--count", "1000", "--in-process")
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
        pytest.param(
            ("reference", "--count", "5", "--cluster", "tcp://127.0.0.1:1"),
            3,
            "luster",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], code: int, says: str) -> None:
    done = differ(*words)
    assert done.exit_code == code
    assert says in done.output
    assert "Traceback" not in done.output


def test_names_are_short_where_a_line_could_not_hold_the_answer() -> None:
    """Else a right adapter that shows its state breaks the limit of a line."""
    long = tuple(api.Item(f"{k:04}" * 250, k) for k in range(36))
    given = Parameters(9, tuple(api.Request("q" * 999 + str(r), long) for r in range(20)))
    assert in_one_line(given, 10) == given
    short = in_one_line(given, 300)
    assert len({i.identifier for i in short.requests[0].items}) == 36
    assert sum(len(i.identifier) for i in short.requests[0].items) < 200
    sizes = [[i.num_embeds for i in r.items] for r in short.requests]
    assert sizes == [[i.num_embeds for i in r.items] for r in given.requests]
    assert len({r.request_id for r in short.requests}) == 20
