"""The command `mmcache-spec`, as a user meets it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmcache_spec.checks.bounded import NoVerdict
from mmcache_spec.checks.complete import questions
from mmcache_spec.checks.induction import obligations
from mmcache_spec.checks.redundancy import without
from mmcache_spec.checks.smtlib import scripts
from mmcache_spec.cli.app import cli
from mmcache_spec.generate.record import add_to_record, on_record
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.variants import SPECIFIED, VARIANTS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def run() -> Callable[..., Result]:
    return lambda *arguments: CliRunner().invoke(cli, arguments)


@pytest.mark.slow
def test_prove_says_proved(run: Callable[..., Result]) -> None:
    done = run("prove")
    assert done.exit_code == 0
    count = sum(len(list(obligations(s))) for s in SPECIFIED.systems)
    assert f"PROVED for any number of hashes and requests: {count} obligations" in done.output
    assert "306 of 306 answers and states determined" in done.output


@pytest.mark.slow
def test_complete_says_what_is_complete_and_what_is_left_free(run: Callable[..., Result]) -> None:
    done = run("complete")
    assert done.exit_code == 0
    assert "ledger: COMPLETE: 66 of 66 answers and states determined" in done.output
    assert "encoder-decoder: COMPLETE: 19 of 19" in done.output
    assert "left free: representation of time" in done.output


def test_complete_shows_two_answers_where_a_clause_is_missing(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    (claim,) = (p for p in encoder_decoder().properties if p.name == "notice_after_the_step")
    gappy = replace(SPECIFIED, made_of=(lambda: without(encoder_decoder(), claim),))
    monkeypatch.setattr("mmcache_spec.cli.complete.SPECIFIED", gappy)
    monkeypatch.setitem(VARIANTS, gappy.name, gappy)
    done = run("complete")
    assert done.exit_code == 1
    assert "? the answer of get_freed_mm_hashes is not determined" in done.output
    assert "NOT COMPLETE: 18 of 19" in done.output


@pytest.mark.slow
def test_prove_as_json(run: Callable[..., Result]) -> None:
    done = run("prove", "--json")
    data = json.loads(done.output)
    assert data["variant"] == "specified"
    assert data["verdict"] == "proved"
    assert data["solver"]["name"] == "z3"
    assert {o["kind"] for o in data["obligations"]} == {"initiation", "consecution", "action"}
    assert {o["verdict"] for o in data["obligations"]} == {"proved"}
    assert all(
        {"property", "action", "kind", "verdict", "seconds"} <= o.keys()
        for o in data["obligations"]
    )
    assert data["vacuity"]["unreachable"] == []


@pytest.mark.slow
def test_prove_shows_the_cti_of_a_wrong_variant(run: Callable[..., Result]) -> None:
    done = run("prove", "unfiltered_report")
    assert done.exit_code == 1
    assert "✗ get_freed_mm_hashes satisfies report_disjoint_from_cached" in done.output
    assert "call    get_freed_mm_hashes() → [A]" in done.output
    assert "before  cached A   freeable A   evicted A" in done.output


@pytest.mark.slow
def test_refute_tells_the_story(run: Callable[..., Result]) -> None:
    done = run("refute", "unfiltered_report")
    assert done.exit_code == 0
    assert "has 5 calls" in done.output
    assert "✗  L1 report_disjoint_from_cached" in done.output


@pytest.mark.slow
def test_refute_from_a_pass_as_json(run: Callable[..., Result]) -> None:
    done = run("refute", "unfiltered_report", "--from", "pass", "--format", "json")
    found = json.loads(done.output)["counterexample"]
    assert found["actions"] == ["can_allocate", "allocate", "get_freed_mm_hashes"]
    assert found["breaks"] == [{"clause": "L1", "property": "report_disjoint_from_cached"}]


@pytest.mark.parametrize(
    ("bound", "calls", "progress"),
    [
        ("1", "1 call", "2 hashes, 1 requests, 2 inputs each (progress)"),
        pytest.param(
            "2",
            "2 calls",
            "just 2 hashes, 1 requests, 2 inputs each, unrolled by Z3 (progress)",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_refute_says_up_to_where_it_looked(
    bound: str, calls: str, progress: str, run: Callable[..., Result]
) -> None:
    done = run("refute", "specified", "--bound", bound, "--scope", "2", "1", "2")
    assert done.exit_code == 1
    assert (
        f"no counterexample of up to {calls}, with "
        "up to 2 hashes and 1 request of up to 2 inputs "
        f"(ledger, encoder_decoder, engine, processor_cache); {progress}, "
        "whatever the sizes and the capacity, from 1 on"
    ) in done.output


def test_the_message_names_the_scope_that_shortest_is_relative_to(
    run: Callable[..., Result],
) -> None:
    done = run("refute", "encoder_decoder_repeated_credit", "--scope", "1", "1", "1")
    assert "has 1 call (with up to 1 hash and 1 request of up to 1 input; sizes" in done.output
    assert "requests r1 = [A]" in done.output


def test_refute_of_a_proved_design_says_so_and_searches_nothing(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it searches")

    monkeypatch.setattr("mmcache_spec.cli.refute.look_for", never)
    monkeypatch.setattr("mmcache_spec.cli.refute.on_record", lambda systems: True)
    done = run("refute", "specified")
    assert done.exit_code == 1
    assert "specified is proved, for any number of hashes and requests" in done.output
    data = json.loads(run("refute", "specified", "--format", "json").output)
    assert data == {"variant": "specified", "proved": True, "counterexample": None}


def test_a_definition_that_has_changed_is_not_on_record(tmp_path: Path) -> None:
    path = tmp_path / "proved.json"
    right = SPECIFIED.systems[1]
    wrong = VARIANTS["encoder_decoder_repeated_credit"].system
    add_to_record([right], path)
    assert on_record([right], path)
    assert not on_record([wrong], path)
    assert not on_record([right, wrong], path)


@pytest.mark.parametrize(
    ("command", "sent", "code", "said"),
    [
        ("prove", signal.SIGINT, 130, "interrupted"),
        pytest.param(
            "refute unfiltered_encode_gather_drop --from pass",
            signal.SIGINT,
            130,
            "interrupted",
            marks=pytest.mark.slow,
        ),
        pytest.param("variants --check", signal.SIGINT, 130, "interrupted", marks=pytest.mark.slow),
        ("variants --check", signal.SIGTERM, 143, "ended from outside"),
    ],
)
def test_an_interrupt_is_no_verdict(
    command: str, sent: signal.Signals, code: int, said: str
) -> None:
    """Whatever a solver is doing: one line, and no worker left.

    A worker that is left would keep the pipes open, and `communicate` would wait for it.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "mmcache_spec", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()  # The first line of progress: it is at work.
    process.send_signal(sent)
    out, rest = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"{said}: nothing is concluded" in rest
    assert "Traceback" not in rest
    assert "PROVED" not in out


@pytest.mark.parametrize(
    "arguments",
    [("prove", "nonsense"), ("refute",), ("refute", "specified", "--bound", "0"), ("x",)],
)
def test_usage_errors_exit_with_2(run: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_an_unknown_variant_is_answered_with_the_known_ones(run: Callable[..., Result]) -> None:
    assert "unfiltered_report" in run("prove", "nonsense").output


def test_unknown_is_never_proved(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def undecided(*_: object) -> None:
        raise NoVerdict("for the test")

    monkeypatch.setattr("mmcache_spec.cli.jobs.proof_of", undecided)
    assert run("prove").exit_code == 3


def test_variants_lists_what_is_expected(run: Callable[..., Result]) -> None:
    done = run("variants")
    assert done.exit_code == 0
    assert "vllm#52482" in done.output
    assert "expected: breaks L1" in done.output


@pytest.mark.slow
def test_obligations_are_written_as_smt_lib(run: Callable[..., Result], tmp_path: Path) -> None:
    done = run("obligations", "--out", str(tmp_path / "smt"))
    assert done.exit_code == 0
    files = sorted((tmp_path / "smt").glob("*.smt2"))
    queries = sum(len(list(scripts(o))) for s in SPECIFIED.systems for o in obligations(s))
    asked = sum(len(list(questions(s))) for s in SPECIFIED.systems)
    assert len(files) == queries + asked > 600
    assert all("(check-sat)" in f.read_text() for f in files)


def test_obligations_into_a_file_is_refused_in_words(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    done = run("obligations", "--out", str(taken))
    assert done.exit_code == 2
    assert "Traceback" not in done.output


@pytest.mark.slow  # as `make docs` writes it; the other generated pages are compared in .ci/run
def test_the_reference_page_is_as_generated(run: Callable[..., Result]) -> None:
    assert run("clauses", "--markdown").output == (ROOT / "docs/clauses.md").read_text()


@pytest.mark.parametrize(
    "command", [pytest.param("prove --json", marks=pytest.mark.slow), "variants", "clauses"]
)
def test_a_reader_that_goes_away_is_no_verdict(command: Any) -> None:
    shell = f"set -o pipefail; {sys.executable} -m mmcache_spec {command} | head -c 10"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert done.returncode in (0, 141)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_variants_of_one_model_are_those_of_no_other(run: Callable[..., Result]) -> None:
    done = run("variants", "encoder_decoder")
    names = {line.split()[0] for line in done.output.splitlines() if not line.startswith(" ")}
    assert names == {n for n, v in VARIANTS.items() if v.systems[0].name == "encoder_decoder"}
    assert run("variants", "nonsense").exit_code == 2
