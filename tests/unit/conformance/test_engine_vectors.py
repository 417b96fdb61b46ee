"""The engine vectors: their format, where they come from, what passes and what fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from mmcache_conformance.engines.clauses import judge, unplayed
from mmcache_conformance.engines.generate import (
    contains,
    differences,
    generate,
    load_paths,
    load_sketches,
)
from mmcache_conformance.engines.generate import main as generate_main
from mmcache_conformance.engines.protocol import EngineCase, NotSupported, PassRecord
from mmcache_conformance.engines.reference import REFERENCE_VARIANTS, ReferencePass
from mmcache_conformance.engines.situations import reaches
from mmcache_conformance.implementation import Implementation
from mmcache_conformance.suites.load import ENGINES, MANAGERS, load_all, load_suite
from mmcache_conformance.verdicts.model import PassFailure
from mmcache_conformance.verdicts.run import exit_code, run_target
from mmcache_spec.model.variants import VARIANTS
from mmcache_vectors.engine import (
    EngineVector,
    ResetBothSides,
    VectorError,
    decode,
    encode,
    json_schema,
    load,
)
from mmcache_vectors.manager import encode as encode_manager

VECTORS = load_suite(None, ENGINES)


@pytest.mark.slow
def test_the_vectors_are_what_their_seeds_generate() -> None:
    assert generate() == list(VECTORS)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.id)
def test_bytes_are_canonical_and_valid(vector: EngineVector, tmp_path: Path) -> None:
    content = encode(vector)
    assert decode(content, "x") == vector
    jsonschema.validate(json.loads(content), json_schema())
    (tmp_path / "v.json").write_bytes(content)
    assert load(tmp_path / "v.json") == vector


@pytest.mark.parametrize("variant", REFERENCE_VARIANTS)
def test_exactly_the_killed_variants_fail(variant: str) -> None:
    report = run_target(ReferencePass(variant), VECTORS, stretch=False)
    failed = {v.id for v in report.verdicts if v.outcome == "fail"}
    assert failed == {v.id for v in VECTORS if variant in v.kills}
    assert all(v.outcome != "error" for v in report.verdicts)


def test_every_wrong_variant_is_killed_and_no_right_one() -> None:
    right = {name for name in REFERENCE_VARIANTS if VARIANTS[name].expected is None}
    killed = {name for vector in VECTORS for name in vector.kills}
    assert killed == set(REFERENCE_VARIANTS) - right


def test_a_vector_breaks_the_clause_that_its_variant_breaks_in_the_specification() -> None:
    for vector in VECTORS:
        if vector.variant != "specified":
            (verdict,) = run_target(ReferencePass(vector.variant), [vector], stretch=False).verdicts
            assert isinstance(verdict.failure, PassFailure)
            assert set(vector.clauses) <= {b.clause for b in verdict.failure.breaches}


def test_the_reference_comes_to_every_situation() -> None:
    report = run_target(ReferencePass(), VECTORS, stretch=False)
    assert exit_code([report]) == 0
    assert [v.reached for v in report.verdicts] == [v.situation and True for v in VECTORS]


def test_containing_a_path() -> None:
    log = [("a", "r", 0), ("b", "r", 0), ("a", "s", 0), ("dispatch", "", -1)]
    assert contains(log, [("a", "r", 0), ("accept", "r", -1), ("dispatch", "", -1)])
    assert not contains(log, [("dispatch", "", -1), ("a", "r", 0)])
    assert not contains(log, [("a", "q", 0)])


def _edited(**changes: Any) -> bytes:
    document = msgspec.json.decode(encode(VECTORS[0]))
    for path, value in changes.items():
        *way, last = path.split("__")
        at = document
        for key in way:
            at = at[int(key) if key.isdigit() else key]
        at[last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "x: not JSON"),
        (b"{}", r"at \$\.format: not an engine vector"),
        (b"[" * 5000, r"at \$\.format: not an engine vector"),
        (b'{"x":' * 5000, "nested too deeply"),
        (_edited(format_version=2), r"at \$\.format_version: version 2"),
        (_edited(engine__block_size=0), r"at \$\.engine\.block_size"),
        (_edited(engine__policy="lottery"), r"at \$\.engine\.policy"),
        (_edited(more=1), "unknown field"),
        (_edited(requests__0__request_id="r2"), r"\$\.requests: a request_id occurs twice"),
        (_edited(requests__0__items__0__num_embeds=5), "has two sizes"),
        (_edited(requests__0__items__0__position=99), "ends after the prompt"),
        (_edited(events=[{"op": "abort", "before_pass": 1, "request": "no"}]), "no request 'no'"),
        (_edited(engine__num_blocks=99), r"at \$\.id: the content makes it"),
    ],
)
def test_what_is_wrong_is_said(content: bytes, says: str) -> None:
    with pytest.raises(VectorError, match=says):
        decode(content, "x")


def test_a_directory_without_vectors(tmp_path: Path) -> None:
    with pytest.raises(VectorError, match="no engine vectors here"):
        load_suite(tmp_path, ENGINES)
    with pytest.raises(VectorError):
        load_suite(tmp_path / "missing", ENGINES)
    with pytest.raises(VectorError, match=r"v\.json"):
        load(tmp_path / "v.json")


def test_a_directory_may_have_both_kinds(tmp_path: Path) -> None:
    ours, theirs = VECTORS[0], load_suite()[0]
    (tmp_path / f"{ours.id}.json").write_bytes(encode(ours))
    (tmp_path / f"{theirs.id}.json").write_bytes(encode_manager(theirs))
    assert load_suite(tmp_path, ENGINES) == (ours,)
    assert load_suite(tmp_path, MANAGERS) == (theirs,)
    assert load_all(tmp_path) == (theirs, ours)
    (tmp_path / "bad.json").write_text('{"format": "mmcache/other"}')
    for format in (ENGINES, MANAGERS):
        with pytest.raises(VectorError, match=r"bad\.json: at \$\.format: not an? "):
            load_suite(tmp_path, format)


def test_what_is_generated_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmcache_conformance.engines.generate.generate", lambda: list(VECTORS))
    contents = {f"{v.id}.json": encode(v) for v in VECTORS}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert differences(tmp_path, contents) == []
    first, second = sorted(contents)[:2]
    (tmp_path / first).write_bytes(contents[first] + b" ")
    (tmp_path / second).unlink()
    (tmp_path / "more.json").write_text("{}")
    told = differences(tmp_path, contents)
    assert told == sorted((f"{first}: differs", f"{second}: missing", "more.json: not generated"))
    assert generate_main(["--check", str(tmp_path)]) == 1
    assert "more.json: not generated" in capsys.readouterr().out
    assert generate_main([str(tmp_path)]) == 0
    assert generate_main(["--check", str(tmp_path)]) == 0


def test_every_sketch_and_every_path_is_used() -> None:
    sketches = load_sketches()
    assert {s.path for s in sketches.sketch} == {p.name for p in load_paths()}
    named = {r["shapes"] for s in sketches.sketch for r in s.requests.values() if "shapes" in r}
    assert named == set(sketches.grid)


def _record(**changes: Any) -> PassRecord:
    plain = PassRecord(
        number=0,
        num_scheduled_tokens={"r1": 1},
        starts={"r1": 0},
        scheduled_encoder_inputs={},
        allocated=(),
        hits=(),
        report=(),
        cached=(),
        gathered=(),
        missed=(),
        without_payload=(),
        held_before=(),
        worker=(),
        peak=0,
        preempted=(),
        running=(),
        waiting=(),
        references={},
    )
    return msgspec.structs.replace(plain, **changes)


@pytest.mark.parametrize(
    ("changes", "clauses"),
    [
        ({}, []),
        ({"missed": ("A",)}, ["S1"]),
        ({"report": ("A",), "cached": ("A",), "worker": ("A",)}, ["L1"]),
        ({"cached": ("A",)}, ["S2", "S3"]),
        ({"worker": ("A",)}, ["S3"]),
        ({"references": {"A": ("r",)}}, ["S5"]),
        ({"references": {"A": ("r",)}, "running": ("r",)}, ["S7"]),
        ({"without_payload": ("A",)}, ["S8"]),
        ({"error": "AssertionError"}, ["error"]),
    ],
)
def test_each_clause_can_break_alone(changes: Any, clauses: list[str]) -> None:
    assert [b.clause for b in judge(VECTORS[0], [_record(**changes)])] == clauses


def test_too_much_at_the_worker_and_a_stall() -> None:
    """S4, S7."""
    vector = VECTORS[0]
    (size,) = {i.num_embeds for r in vector.requests for i in r.items}
    small = msgspec.structs.replace(vector.engine, cache_size=size - 1)
    full = _record(cached=("A",), worker=("A",))
    found = judge(msgspec.structs.replace(vector, engine=small), [full])
    assert [b.clause for b in found] == ["S4"]
    exact = msgspec.structs.replace(vector.engine, cache_size=size)
    strange = _record(cached=("A",), worker=("A", "zz"))
    found = judge(msgspec.structs.replace(vector, engine=exact), [strange])
    assert [b.clause for b in found] == ["S3"], "what nobody knows has no size"
    idle = [
        _record(number=k, num_scheduled_tokens={}, waiting=("r",))
        for k in range(vector.expect.stall_after)
    ]
    (stalled,) = judge(vector, idle)
    assert (stalled.clause, stalled.pass_number) == ("S7", vector.expect.stall_after - 1)


class Plays:
    """An engine that shows the passes that it was given."""

    name = "plays"

    def __init__(self, *records: PassRecord) -> None:
        self.records = records

    def start(self) -> Implementation:
        return ReferencePass().start()

    def passes(self, case: object) -> Iterator[PassRecord]:
        yield from self.records

    def stop(self) -> None:
        pass


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([], "made 0 passes, and never came to"),
        ([_record()], "made 1 passes, and never came to"),
        ([_record(number=1)], "numbered [1]"),
        ([_record(), _record()], "numbered [0, 0]"),
    ],
)
def test_passes_that_leave_something_out_are_no_pass(records: Any, says: str) -> None:
    vector = next(v for v in VECTORS if any(r.arrival for r in v.requests))
    report = run_target(Plays(*records), [vector], stretch=False)
    assert [v.outcome for v in report.verdicts] == ["error"]
    assert says in str(report.verdicts[0].reason)
    assert exit_code([report]) == 1


def test_what_ends_an_engine_leaves_nothing_out() -> None:
    vector = next(v for v in VECTORS if any(r.arrival for r in v.requests))
    assert unplayed(vector, [_record(missed=("A",))]) is None
    assert unplayed(vector, [_record(error="AssertionError")]) is None
    assert unplayed(vector, [_record()]) is not None
    assert unplayed(vector, [_record(), _record(number=1, missed=("A",))]) is None


# --- situations: each comes up, and is seen not to ----------------------------------------------

_RESET = next(v for v in VECTORS if v.situation == "reset_while_held")


def _about(situation: Any) -> EngineVector:
    base = _RESET if situation == "reset_while_held" else _two_requests()
    return msgspec.structs.replace(base, situation=situation)


def _two_requests() -> EngineVector:
    """Two requests, `p` and `q`, each with one item `A` of 4 tokens from position 4 on."""
    vector = next(v for v in VECTORS if any(r.items for r in v.requests))
    (item, *_) = next(r.items for r in vector.requests if r.items)
    item = msgspec.structs.replace(item, identifier="A", position=4, num_embeds=4)
    first = msgspec.structs.replace(vector.requests[0], request_id="p", items=(item,))
    second = msgspec.structs.replace(first, request_id="q")
    return msgspec.structs.replace(vector, requests=(first, second), events=())


_WITHDRAWN = {"allocated": (("p", 0),), "preempted": ("p",)}
_PREFIX = _record(starts={"p": 8})
_RESET_AT = next(e.before_pass for e in _RESET.events if isinstance(e, ResetBothSides))

SITUATIONS = {
    "encoding_withdrawn": (
        [_record(**_WITHDRAWN)],
        [
            [_record()],
            [_record(**{**_WITHDRAWN, "preempted": ()})],
            [_record(**{**_WITHDRAWN, "preempted": ("q",)})],
            [_record(**_WITHDRAWN, scheduled_encoder_inputs={"p": (0,)})],
        ],
    ),
    "encoding_shared_when_withdrawn": (
        [_record(**_WITHDRAWN, hits=(("q", 0),))],
        [
            [_record(**_WITHDRAWN)],
            [_record(**_WITHDRAWN, hits=(("p", 0),))],
            [_record(hits=(("q", 0),))],
        ],
    ),
    "encoded_while_held": (
        [_record(scheduled_encoder_inputs={"p": (0,)}, held_before=("A",))],
        [
            [_record(scheduled_encoder_inputs={"p": (0,)}, held_before=("B",))],
            [_record(held_before=("A",))],
        ],
    ),
    "encoded_after_prefix_hit": (
        [_PREFIX, _record(number=1, scheduled_encoder_inputs={"p": (0,)})],
        [
            [_record(starts={"p": 7}), _record(number=1, scheduled_encoder_inputs={"p": (0,)})],
            [_PREFIX, _record(number=1, scheduled_encoder_inputs={"q": (0,)})],
            [_PREFIX],
        ],
    ),
    "hit_while_waiting": (
        [_record(hits=(("p", 0),), waiting=("p",))],
        [[_record(hits=(("p", 0),), running=("p",))], [_record(waiting=("p",))]],
    ),
    "hash_dropped": (
        [_record(held_before=("A",))],
        [[_record()], [_record(held_before=("A",), cached=("A",))]],
    ),
    "reset_while_held": (
        [_record(number=_RESET_AT - 1, worker=("A",))],
        [
            [_record(number=_RESET_AT - 1)],
            [_record(number=_RESET_AT, worker=("A",))],
        ],
    ),
}
"""For each situation: passes that come to it, and passes that each miss it by one thing."""


def test_every_situation_is_tried() -> None:
    assert set(SITUATIONS) == {v.situation for v in VECTORS} - {None}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_situation_that_does_not_come_up_is_not_reached(situation: Any) -> None:
    there, elsewhere = SITUATIONS[situation]
    assert reaches(_about(situation), there) is True
    for records in elsewhere:
        assert reaches(_about(situation), records) is False


def test_who_shares_an_encoding_may_come_before_or_after() -> None:
    about = _about("encoding_shared_when_withdrawn")
    for mine, other in ("pq", "qp"):
        shared = _record(allocated=((mine, 0),), preempted=(mine,), hits=((other, 0),))
        assert reaches(about, [shared]) is True


def test_a_prefix_may_end_behind_the_item() -> None:
    there = [
        _record(starts={"p": 10**6}),
        _record(number=1, scheduled_encoder_inputs={"p": (0,)}),
    ]
    assert reaches(_about("encoded_after_prefix_hit"), there) is True


def test_ids_are_compared_and_not_the_objects() -> None:
    """What comes from a program has texts of its own."""
    about = _about("encoded_after_prefix_hit")
    written, told = ("".join(("request ", "one")) for _ in range(2))
    assert written is not told
    first = msgspec.structs.replace(about.requests[0], request_id=written)
    about = msgspec.structs.replace(about, requests=(first, *about.requests[1:]))
    there = [_record(starts={told: 8}), _record(number=1, scheduled_encoder_inputs={told: (0,)})]
    assert reaches(about, there) is True


def test_a_vector_without_a_situation_has_none_to_reach() -> None:
    assert reaches(_about(None), []) is None


def test_a_pass_without_its_situation_is_told_and_is_no_failure() -> None:
    """An engine that encodes everything at once, with room for everything, has no trouble."""
    vector = next(v for v in VECTORS if v.id.startswith("waiting-keeps-references"))
    easy = msgspec.structs.replace(
        vector, engine=msgspec.structs.replace(vector.engine, num_blocks=999, cache_size=999)
    )
    (verdict,) = run_target(ReferencePass(), [easy], stretch=False).verdicts
    assert (verdict.outcome, verdict.reached) == ("pass", False)


class LacksReset(Plays):
    """An engine that cannot do what some workload needs."""

    def passes(self, case: object) -> Iterator[PassRecord]:
        yield _record()
        raise NotSupported("this release cannot reset the encoder cache")


def test_what_an_engine_cannot_do_is_skipped_and_nothing_is_passed() -> None:
    report = run_target(LacksReset(), VECTORS, stretch=False)
    assert {(v.outcome, v.reason) for v in report.verdicts} == {
        ("skip", "this release cannot reset the encoder cache")
    }
    assert exit_code([report]) == 3


def test_an_adapter_that_breaks_down_is_an_error_of_one_vector() -> None:
    class Breaks(Plays):
        def passes(self, case: object) -> Iterator[PassRecord]:
            raise OSError("pipe closed")

    report = run_target(Breaks(), VECTORS[:2], stretch=False)
    assert [v.outcome for v in report.verdicts] == ["error", "error"]
    assert "OSError: pipe closed" in str(report.verdicts[0].reason)
    assert exit_code([report]) == 1


class TellsMore(ReferencePass):
    """A right engine that puts something strange into one field of every pass."""

    def __init__(self, field: str, strange: Any) -> None:
        super().__init__("specified")
        self.field, self.strange = field, strange

    def passes(self, case: EngineCase) -> Iterator[PassRecord]:
        for record in super().passes(case):
            told = getattr(record, self.field)
            more = told | self.strange if isinstance(told, dict) else (*told, *self.strange)
            yield msgspec.structs.replace(record, **{self.field: more})


STRANGE: list[tuple[str, Any, str]] = [
    *((name, ("zz",), "request 'zz'") for name in ("preempted", "running", "waiting")),
    *((name, {"zz": 0}, "request 'zz'") for name in ("num_scheduled_tokens", "starts")),
    *((name, (("zz", 0),), "request 'zz'") for name in ("allocated", "hits")),
    *((name, (("r1", 9),), "item 9 of request 'r1'") for name in ("allocated", "hits")),
    ("allocated", (("r1", -1),), "item -1 of request 'r1'"),
    *((n, (("r1", 1),), "item 1 of request 'r1'") for n in ("allocated", "hits")),
    ("scheduled_encoder_inputs", {"zz": (0,)}, "request 'zz'"),
    ("scheduled_encoder_inputs", {"r1": (9,)}, "item 9 of request 'r1'"),
    *((n, ("zz",), "hash 'zz'") for n in ("report", "gathered", "missed", "without_payload")),
]


@pytest.mark.parametrize(("field", "strange", "says"), STRANGE)
def test_what_the_workload_does_not_have_is_no_verdict(field: str, strange: Any, says: str) -> None:
    report = run_target(TellsMore(field, strange), VECTORS, stretch=False)
    assert {v.outcome for v in report.verdicts} == {"error"}
    reasons = {str(v.reason) for v in report.verdicts}
    assert all(f"{says}, which the workload does not have" in reason for reason in reasons)


@pytest.mark.parametrize(("field", "clause"), [("worker", "S3"), ("cached", "S2")])
def test_a_hash_of_one_side_alone_breaks_the_clauses_of_the_mirror(field: str, clause: str) -> None:
    report = run_target(TellsMore(field, ("zz",)), VECTORS, stretch=False)
    for verdict in report.verdicts:
        assert isinstance(verdict.failure, PassFailure)
        assert clause in {b.clause for b in verdict.failure.breaches}
