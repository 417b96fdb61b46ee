"""The command: exit codes, what is printed, and that nobody ever sees a traceback."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.cli.schema import SCHEMAS
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.suites.load import load_all, load_suite
from mmcache_conformance.verdicts.model import RunReport, run_schema
from mmcache_vectors.manager import Vector, encode, json_schema
from tests.support.drivers import SHORT, short_vectors

RIGHT = "tests.support.plain_managers:Attaches,tests.support.plain_managers:EncoderDecoder"

PLAINLY = ["run", "--plain", "--json"]


@pytest.fixture
def run(vector_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`mmcache-conformance ARGUMENTS --vectors DIR` on the hand-made vectors."""
    monkeypatch.setenv("COLUMNS", "120")

    def invoke(*arguments: str) -> Result:
        words = [*arguments, "--vectors", str(vector_directory)]
        return CliRunner().invoke(cli, words, prog_name="mmcache-conformance")

    return invoke


class TestExitCodes:
    def test_all_pass(self, run: Callable[..., Result]) -> None:
        result = run("run", RIGHT)
        assert result.exit_code == 0
        assert "FAIL" not in result.output

    def test_the_reference_is_the_default(self, run: Callable[..., Result]) -> None:
        result = run("run")
        assert result.exit_code == 0
        assert "reference" in result.output

    def test_a_failure(self, run: Callable[..., Result]) -> None:
        assert run("run", "tests.known_bad.managers:UnfilteredReport").exit_code == 1

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            (["run", "nonsense"], "does not name a target"),
            (["run", "nonsense"], "or an engine: reference-pass[:VARIANT], vllm-scheduler"),
            (["run", RIGHT, "-k", "L1 and"], "Invalid value for -k: expected a word"),
            (["run", RIGHT, "-k", "L99"], "no vector matches 'L99'"),
            (["run", "--absent"], "No such option"),
            (["absent"], "No such command"),
            (["show", "absent"], "no vector 'absent'"),
        ],
    )
    def test_usage(self, arguments: list[str], reason: str, run: Callable[..., Result]) -> None:
        result = run(*arguments)
        assert result.exit_code == 2
        assert reason in result.output

    @pytest.mark.parametrize(
        "spec",
        ["no_such_module:C", "tests.known_bad.misbehaving:CannotBeMade", "vllm:no/such/path"],
    )
    def test_not_started(self, spec: str, run: Callable[..., Result]) -> None:
        result = run("run", spec)
        assert result.exit_code == 3
        assert f"{spec} could not be started" in result.output

    def test_not_started_outweighs_failures(self, run: Callable[..., Result]) -> None:
        result = run("run", "no_such:C", "tests.known_bad.managers:UnfilteredReport")
        assert result.exit_code == 3
        assert "FAIL" in result.output

    def test_a_malformed_vector_is_named(
        self, run: Callable[..., Result], vector_directory: Path
    ) -> None:
        (vector_directory / "broken.json").write_text('{"format": "mmcache/vector"}')
        result = run("run")
        assert result.exit_code == 2
        assert "broken.json: at $.format_version: " in result.output

    def test_fail_fast_stops_everything(self, run: Callable[..., Result]) -> None:
        result = run(
            "run", "tests.known_bad.managers:UnfilteredReport", RIGHT, "--fail-fast", "--json"
        )
        assert result.exit_code == 1
        (only,) = json.loads(result.stdout)["targets"]
        assert only["verdicts"][-1]["outcome"] == "fail"


class TestText:
    def test_a_failure_is_a_story(self, run: Callable[..., Result], vector_directory: Path) -> None:
        result = run("run", "tests.known_bad.managers:UnfilteredReport", "-k", "L1")
        (file,) = vector_directory.glob("evicted-*")
        decisions, told, table = result.output.split("\n\n", 2)
        assert decisions.splitlines() == [
            "tests.known_bad.managers:UnfilteredReport: 1 decision:",
            "  unfiltered_report, vllm#52482, 1 vector: the report names every hash that was "
            f"evicted, even one that is cached again. First seen at step 9 of {file.stem}. How it "
            "ought to be: A hash in the report is not cached when it is reported. (L1)",
        ]
        assert told.splitlines() == [
            f"FAIL {file.stem} on tests.known_bad.managers:UnfilteredReport",
            "Hand-made: evicted-and-allocated-again.",
            "breaks L1 report_disjoint_from_cached: A hash in the report is not cached when it is "
            "reported.",
            "as unfiltered_report does",
            "capacity 2 embeddings",
            "request r1: [0] X (1), [1] Y (1)",
            "request r2: [0] Z (1), [1] X (1)",
            "  1  allocate(r1, 0)  # X, 1",
            "  2  allocate(r1, 1)  # Y, 1",
            "  3  free(r1)",
            "  4  can_allocate(r2, 0, encoder_compute_budget=1, num_embeds_to_schedule=0)"
            "  # Z, 1  ->  True",
            "  5  allocate(r2, 0)  # Z, 1",
            "  6  check_and_update_cache(r2, 1)  # X, 1  ->  False",
            "  7  can_allocate(r2, 1, encoder_compute_budget=1, num_embeds_to_schedule=0)"
            "  # X, 1  ->  True",
            "  8  allocate(r2, 1)  # X, 1",
            "step 9 of 10: get_freed_mm_hashes()",
            "              expected | got",
            "     returns  Y        | X, Y",
            "reproduce: mmcache-conformance run tests.known_bad.managers:UnfilteredReport "
            f"-k {file.stem} --vectors {vector_directory}",
        ]
        assert "0/1" in table

    def test_the_reproduce_command_reproduces(
        self, run: Callable[..., Result], vector_directory: Path
    ) -> None:
        output = run("run", "tests.known_bad.managers:EvictsTheNewest").output
        (line,) = (line for line in output.splitlines() if line.startswith("reproduce: "))
        words = line.split()[2:]
        again = CliRunner().invoke(cli, words, prog_name="mmcache-conformance")
        assert again.exit_code == 1
        assert line in again.output

    def test_an_exception_is_shown_as_it_is(self, run: Callable[..., Result]) -> None:
        result = run("run", "tests.known_bad.misbehaving:Raises", "-k", "L7")
        assert "the call failed: ValueError: [red]no room[/red] (misbehaving.py" in (result.output)

    def test_quiet(self, run: Callable[..., Result]) -> None:
        result = run("run", "tests.known_bad.managers:UnfilteredReport", "-q")
        (line,) = result.output.splitlines()
        assert line.startswith("tests.known_bad.managers:UnfilteredReport")
        assert " failed" in line
        assert "(L1)  decisions: unfiltered_report" in line

    def test_quiet_says_why_a_target_could_not_be_started(self, run: Callable[..., Result]) -> None:
        (line,) = run("run", "-q", "no_such_module:Class").output.splitlines()
        assert "could not be started" in line
        assert "no_such_module" in line

    def test_the_summary_counts_by_clause(self, run: Callable[..., Result]) -> None:
        result = run("run", "tests.known_bad.misbehaving:Hidden", RIGHT)
        rows = {
            line.split()[0]: line.split()[1:] for line in result.output.splitlines() if line.strip()
        }
        assert rows["L1"] == ["report_disjoint_from_cached", "1/1", "1/1"]
        assert rows["L10"] == ["reset_is_initial", "skipped", "1/1"]
        assert rows["passed"] == ["3", "7"]
        assert rows["skipped"] == ["4", "0"]
        assert (
            "2 skipped: needs encoder_decoder, which tests.known_bad.misbehaving:Hidden"
            in result.output
        )

    @pytest.mark.parametrize("width", [40, 80, 200])
    def test_no_table_is_wider_than_the_terminal(
        self, width: int, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        output = run(
            "run", "--in-process", "reference", *["tests.support.plain_managers:Attaches"] * 5
        ).output
        rows = [line for line in output.splitlines() if line.startswith("L10 ")]
        assert sum(row.count("1/1") for row in rows) == 6
        assert max(map(len, rows)) <= width

    @pytest.mark.parametrize("quiet", [(), ("-q",)])
    def test_a_target_of_which_nothing_was_checked_has_not_passed(
        self, run: Callable[..., Result], quiet: list[str]
    ) -> None:
        result = run("run", "tests.known_bad.misbehaving:Hidden", "-k", "E1", *quiet)
        assert result.exit_code == 3
        assert "nothing was checked" in result.output

    def test_list(self, run: Callable[..., Result]) -> None:
        lines = run("list", "-k", "encoder_decoder").output.splitlines()
        assert [line.split()[1:] for line in lines] == [
            ["E1", "encoder_decoder", "3", "steps"],
            ["E2", "encoder_decoder", "4", "steps"],
        ]

    def test_show_takes_the_beginning_of_an_id(
        self, run: Callable[..., Result], hand_made: dict[str, Vector]
    ) -> None:
        result = run("show", "one-hash")
        assert result.exit_code == 0
        assert result.output.startswith(hand_made["one-hash-twice"].id)
        assert "  2  check_and_update_cache(r1, 1)  # X, 1  ->  True\n       held r1: 0, 1" in (
            result.output
        )

    def test_show_tells_all_that_begin_so(
        self, run: Callable[..., Result], hand_made: dict[str, Vector]
    ) -> None:
        result = run("show", "encoder-decoder")
        assert result.exit_code == 0
        ids = [v.id for v in hand_made.values() if v.id.startswith("encoder-decoder")]
        assert len(ids) == 2
        assert [line for line in result.output.splitlines() if line in ids] == sorted(ids)

    def test_show_takes_the_whole_of_an_id_that_begins_another(
        self, run: Callable[..., Result], hand_made: dict[str, Vector]
    ) -> None:
        (id,) = (v.id for v in hand_made.values() if v.id.startswith("one-hash"))
        result = run("show", id)
        assert result.output.splitlines()[0] == id

    def test_show_takes_the_name_of_a_variant(self) -> None:
        for name in ("unfiltered_report", "unfiltered-report"):
            shown = CliRunner().invoke(cli, ["show", name, "--json"])
            assert shown.exit_code == 0
            assert [v["variant"] for v in json.loads(shown.output)] == ["unfiltered_report"] * 2

    def test_ids_are_completed(self) -> None:
        from mmcache_conformance.cli.options import complete_vector

        completed = complete_vector(None, None, "unfiltered-")  # type: ignore[arg-type]
        assert completed == [v.id for v in load_all() if v.id.startswith("unfiltered-")]
        assert len(complete_vector(None, None, "")) == len(load_all())  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("target", "each"),
        [
            pytest.param("UnfilteredReport", 1, marks=pytest.mark.slow),
            pytest.param("FirstOccurrenceRelease", 1, marks=pytest.mark.slow),
            pytest.param("Uncharged", 1, marks=pytest.mark.slow),
            pytest.param("ReportIsAString", 1, marks=pytest.mark.slow),
            ("UnfilteredReport", 9),
            ("ReportIsAString", 9),
        ],
    )
    def test_a_first_file_of_expected_failures_covers_everything(
        self, target: str, each: int, tmp_path: Path
    ) -> None:
        """Also where some vectors only are played."""
        name = f"tests.known_bad.managers:{target}"
        folder = tmp_path / "vectors"
        folder.mkdir()
        for vector in load_suite() if each == 1 else short_vectors()[::each]:
            (folder / f"{vector.id}.json").write_bytes(encode(vector))
        some = ["--vectors", str(folder)]
        written = CliRunner().invoke(cli, ["expected", name, *some])
        assert written.exit_code == 0
        path = tmp_path / f"{target}.toml"
        path.write_text(written.output)
        done = CliRunner().invoke(cli, ["run", "-q", name, "--expected", str(path), *some])
        assert done.exit_code == 0, done.output

    def test_of_what_cannot_be_driven_nothing_is_expected(self) -> None:
        refused = CliRunner().invoke(cli, ["expected", "tests.known_bad.other_apis:AnswersMore"])
        assert (refused.exit_code, refused.stdout) == (3, "")
        assert "Cannot be driven" in refused.stderr

    def test_an_expected_clause_is_one_that_breaks(self, tmp_path: Path) -> None:
        """Vectors about pairs of calls name no clause, and break it all the same."""
        name = "tests.known_bad.managers:UnfilteredReport"
        path = tmp_path / "x.toml"
        link = 'reason = "known"\nlink = "https://example.org"\n'
        head = 'format = "mmcache/expected-failures"\nformat_version = 1\n\n[[expected]]\n'
        path.write_text(f'{head}clause = "L1"\n{link}')
        words = ["run", "-q", "--plain", "--in-process", "-k", SHORT, name, "--expected", str(path)]
        assert CliRunner().invoke(cli, words).exit_code == 0
        path.write_text(f'{head}clause = "L2"\n{link}')
        other = CliRunner().invoke(cli, words)
        assert other.exit_code == 1
        assert "failed as expected" not in other.output

    def test_show_suggests(self, run: Callable[..., Result]) -> None:
        result = run("show", "encoder-decoder-credits")
        assert result.exit_code == 2
        assert "did you mean encoder-decoder-credit-" in result.output

    def test_what_is_packaged_can_be_listed_and_shown(self) -> None:
        suite = load_all()
        listed = CliRunner().invoke(cli, ["list"]).output.splitlines()
        assert [line.split()[0] for line in listed] == [vector.id for vector in suite]
        shown = CliRunner().invoke(cli, ["show", "phantom-entry"])
        assert shown.exit_code == 0
        told = [v.id for v in suite if v.id.startswith("phantom-entry")]
        assert len(told) == 4
        assert [line for line in shown.output.splitlines() if line in told] == told
        assert "it is about this situation: encoding_withdrawn" in shown.output

    @pytest.mark.parametrize("what", [None, *SCHEMAS])
    def test_schemas(self, what: str | None) -> None:
        result = CliRunner().invoke(cli, ["schema", *([what] if what else [])])
        assert result.exit_code == 0
        document = json.loads(result.output)
        jsonschema.Draft202012Validator.check_schema(document)
        assert document["title"]
        if what in {None, "vector"}:
            assert document == json.loads(json.dumps(json_schema()))

    @pytest.mark.parametrize(
        ("what", "arguments"),
        [
            ("run", ["run", "--plain", "reference", "reference-pass:waiting_keeps_references"]),
            ("workloads", ["workloads", "reference-pass:retain_everything", "--passes", "20"]),
            ("exhaust", ["exhaust", "--hashes", "1", "--requests", "1", "--inputs", "1"]),
            ("matrix", ["matrix", "--releases", "9999.0.0", "--also", "reference"]),
            ("list", ["list", "-k", "L1"]),
            ("smoke", ["smoke", "tests.known_bad.managers:RefusesEverything"]),
            ("smoke", ["smoke", "tests.known_bad.other_apis:EarlierAdmission"]),
        ],
    )
    def test_what_json_prints_is_what_its_schema_says(
        self, what: str, arguments: list[str]
    ) -> None:
        schema = json.loads(CliRunner().invoke(cli, ["schema", what]).output)
        result = CliRunner().invoke(cli, [*arguments, "--json"])
        document = json.loads(result.stdout)
        jsonschema.Draft202012Validator(schema).validate(document)
        assert document["format"] == f"mmcache/{what}"
        assert document["format_version"] >= 1
        assert not jsonschema.Draft202012Validator(schema).is_valid({**document, "format": "x"})


class TestJson:
    def test_it_is_what_its_schema_says(self, run: Callable[..., Result]) -> None:
        result = run(
            "run", "tests.known_bad.managers:UnfilteredReport", "no_such:C", RIGHT, "--json"
        )
        document = json.loads(result.stdout)
        jsonschema.Draft202012Validator(run_schema()).validate(document)
        assert msgspec.json.decode(result.stdout, type=RunReport, strict=True)
        assert (document["format"], document["format_version"]) == ("mmcache/run", 3)
        assert document["exit_code"] == result.exit_code == 3
        assert document["suite"]["vectors"] == 7
        wrong, absent, right = document["targets"]
        assert {v["outcome"] for v in right["verdicts"]} == {"pass"}
        assert absent["implementation"] is None
        assert "ModuleNotFoundError" in absent["reason"]
        (failure,) = (v["failure"] for v in wrong["verdicts"] if v["outcome"] == "fail")
        assert failure["of"] == "call"
        assert failure["step"] == 8
        assert failure["call"] == {"op": "get_freed_mm_hashes"}
        assert failure["differences"] == [{"what": "returns", "expected": ["Y"], "got": ["X", "Y"]}]

    def test_what_a_class_prints_is_kept_out(self, run: Callable[..., Result]) -> None:
        result = run("run", "tests.known_bad.misbehaving:Prints", "--json")
        assert json.loads(result.stdout)["exit_code"] == 0
        assert result.stderr == ""  # it is in the log of its process, which a failure shows

    def test_only_the_time_differs_from_run_to_run(self, run: Callable[..., Result]) -> None:
        def document() -> object:
            found = json.loads(
                run("run", "tests.known_bad.managers:UnfilteredReport", "--json").stdout
            )
            for target in found["targets"]:
                del target["seconds"]
            return found

        assert document() == document()


def _command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mmcache_conformance", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


class TestProcess:
    def test_a_class_in_the_working_directory(self, tmp_path: Path, vector_directory: Path) -> None:
        (tmp_path / "my_engine.py").write_text(
            "from mmcache import EncoderCacheManager\n\n"
            "class Mine(EncoderCacheManager):\n"
            "    def get_freed_mm_hashes(self):\n"
            "        return []\n"
        )
        words = ["run", "my_engine:Mine", "-k", "L2", "--vectors", str(vector_directory)]
        done = _command(*words, cwd=tmp_path)
        assert done.returncode == 1
        assert "FAIL evicted-and-allocated-again-" in done.stdout
        assert done.stderr == ""

    def test_an_internal_error_is_one_sentence(self, tmp_path: Path) -> None:
        code = (
            "import mmcache_conformance.suites.load as s, mmcache_conformance.cli as c\n"
            "def broken(*arguments): raise AssertionError('impossible')\n"
            "s.load_suite = broken\n"
            "import sys; sys.argv = ['mmcache-conformance', 'run']\n"
            "c.main()\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 3
        sentence = "internal error, please report it: AssertionError: impossible"
        assert done.stderr.startswith(sentence)
        assert "Traceback" not in done.stderr

    def test_a_module_that_fails_to_import(self, tmp_path: Path) -> None:
        (tmp_path / "broken.py").write_text("raise SystemExit(0)\n")
        done = _command("run", "broken:C", cwd=tmp_path)
        assert done.returncode == 3
        assert "SystemExit: 0 (broken.py, line 1)" in done.stdout
        assert "Traceback" not in done.stderr


MINE = """
import os, signal, sys, time
from mmcache import EncoderCacheManager

class Interrupted(EncoderCacheManager):
    def allocate(self, request, input_id):
        # Whoever is started in the background has it ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)

class Foreign(EncoderCacheManager):
    def allocate(self, request, input_id):
        raise ValueError("\u2192 \u00fc \U0001f600")
"""


class TestEnds:
    """However a command ends, there is no traceback, and the code says how it ended."""

    def test_an_interrupt_is_one_line(self, tmp_path: Path, vector_directory: Path) -> None:
        (tmp_path / "mine.py").write_text(MINE)
        words = ["run", "mine:Interrupted", "--in-process", "--vectors", str(vector_directory)]
        done = _command(*words, cwd=tmp_path)
        assert done.returncode == ExitCode.INTERRUPTED
        assert done.stderr.strip() == "interrupted"

    @pytest.mark.parametrize("arguments", [["list"], ["show", "e"], ["schema"], PLAINLY])
    def test_a_closed_pipe_is_silent(self, arguments: list[str], tmp_path: Path) -> None:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as closed:
            done = subprocess.run(
                [sys.executable, "-m", "mmcache_conformance", *arguments],
                cwd=tmp_path,
                stdout=closed,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert done.stderr == ""
        assert done.returncode == ExitCode.BROKEN_PIPE

    @pytest.mark.parametrize("quiet", [[], ["-q"]])
    def test_a_table_into_a_closed_pipe(self, quiet: list[str], tmp_path: Path) -> None:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as closed:
            done = subprocess.run(
                [sys.executable, "-m", "mmcache_conformance", "run", "--plain", *quiet],
                cwd=tmp_path,
                stdout=closed,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert (done.returncode, done.stderr) == (ExitCode.BROKEN_PIPE, "")

    @pytest.mark.parametrize("words", ["list", "run reference -k L7", "exhaust reference"])
    def test_where_nothing_can_be_said_nothing_is_concluded(
        self, words: str, tmp_path: Path
    ) -> None:
        done = subprocess.run(
            ["sh", "-c", f"{shlex.quote(sys.executable)} -m mmcache_conformance {words} >&-"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert done.returncode == ExitCode.COULD_NOT
        assert done.stderr == "cannot write: standard output is closed\n"

    def test_a_table_is_there_however_narrow_the_terminal_is_said_to_be(self) -> None:
        done = CliRunner().invoke(cli, ["run", "reference", "-k", "L7"], env={"COLUMNS": "1"})
        assert done.exit_code == 0
        assert re.search(r"passed +\d+", done.output)

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_a_full_disk_is_one_line(self, tmp_path: Path) -> None:
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "mmcache_conformance", "list"],
                cwd=tmp_path,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert done.returncode == ExitCode.COULD_NOT
        assert done.stderr == "cannot write: No space left on device\n"

    def test_a_terminal_without_our_signs(self, tmp_path: Path, vector_directory: Path) -> None:
        (tmp_path / "mine.py").write_text(MINE)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "mmcache_conformance", "run", "mine:Foreign"),
                *("--vectors", str(vector_directory)),
            ],
            cwd=tmp_path,
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "60"},
        )
        assert done.returncode == ExitCode.FAILED
        assert b"ValueError: ? ? ?" in done.stdout
        assert done.stderr == b""
