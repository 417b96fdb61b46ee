"""Whatever an adapter does: the right verdict on that vector, and the run goes on."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from mmcache_conformance.errors import AdapterError, TargetError, TargetNameError
from mmcache_conformance.targets.command import CommandTarget
from mmcache_conformance.targets.open import open_manager
from mmcache_conformance.targets.process import Process
from mmcache_conformance.targets.protocol import case_of
from mmcache_conformance.targets.start import START_LIMIT, start_seconds, where_it_is
from mmcache_conformance.targets.wire import Errored, Run, Start, Stop, adapter_schema
from mmcache_conformance.verdicts.run import run_target
from mmcache_vectors.manager import Vector
from tests.support.drivers import misbehaving, outcomes, run
from tests.support.pages import ROOT

PYTHON = shlex.join([sys.executable, "-m", "mmcache_conformance.adapters.python"])
REFERENCE = f"{PYTHON} mmcache:EncoderCacheManager,mmcache:EncoderDecoderCacheManager"

BROKEN = {
    "exits": "the adapter exited with code 7",
    "segfaults": "the adapter was killed by SIGSEGV",
    "half a line and exits": "the adapter exited with code 0 after '",
    "closes its output": "the adapter closed its standard output",
    "garbage": "not a reply (JSON is malformed",
    "not utf-8": "not a reply (",
    "nested": "not a reply (",
    "empty line": "not a reply (",
    "endless": "a line of more than ",
    "surplus line": "surplus output after the reply: '",
    "prints before": "surplus output after the reply: '",
    "wrong sequence": "a reply to request 3, where 2 was asked",
    "sequence is a text": "not a reply (Expected `int`, got `str` - at `$.seq`)",
    "no answers": "0 answers to ",
    "one too few": " answers to ",
    "wrong and one too few": " answers to ",
    "one too many": " answers to ",
    "answers after a failure": "answers after call 1, which failed",
    "a number for a Boolean": "not a reply (Expected `bool | str | array | null`, got `int`",
    "leaves out what it promised": "after call 1: cached left out",
    "unknown field": "not a reply (Object contains unknown field `passed`)",
    "gives up": "the adapter gave up: no GPU left",
}


@pytest.mark.parametrize("how", BROKEN)
def test_it_is_an_error_on_that_vector_and_the_run_goes_on(
    how: str, vectors: tuple[Vector, ...]
) -> None:
    first = [v for v in vectors if v.manager == "encoder_cache"][:2]
    report = run(misbehaving(how), (*first, first[0]))
    assert outcomes(report) == ["pass", "error", "pass"]
    assert BROKEN[how] in str(report.verdicts[1].reason)


@pytest.mark.parametrize("how", ["hangs", "half a line", "leaves a child with its output"])
def test_silence_is_an_error_in_time(how: str, vectors: tuple[Vector, ...]) -> None:
    report = run(misbehaving(how, timeout=1.5), vectors[:3])
    assert outcomes(report) == ["pass", "error", "pass"]
    assert report.verdicts[1].reason == "no reply within 1.5 s"


def test_what_comes_later_without_being_asked_is_an_error(vectors: tuple[Vector, ...]) -> None:
    # It comes after the verdict on its own vector, so it is seen at the next, or at the end.
    report = run(misbehaving("surplus, later"), vectors[:2])
    assert outcomes(report) == ["pass", "error"]
    assert "surplus output after the reply: 'by the way" in str(report.verdicts[1].reason)


def test_an_answer_to_what_was_not_asked_yet_is_no_answer(vectors: tuple[Vector, ...]) -> None:
    target = misbehaving("answers ahead")
    target.start()
    case = case_of(next(v for v in vectors if v.manager == "encoder_cache"))
    assert len(target.run(case)) == len(target.run(case)) == len(case.calls)
    time.sleep(0.6)
    with pytest.raises(AdapterError, match="output that was not asked for"):
        target.run(case)
    assert len(target.run(case)) == len(case.calls)
    target.stop()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_nothing_that_it_started_is_left(tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
    how = "leaves a child with its output"
    run(misbehaving(how, tmp_path / "pid", timeout=1.5), vectors[:3])
    stat = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    # One that nobody has waited for yet is over too.
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_standard_error_is_shown_and_never_judged(vectors: tuple[Vector, ...]) -> None:
    report = run(misbehaving("talks to itself"), vectors[:3])
    assert outcomes(report) == ["pass"] * 3
    assert [v.stderr for v in report.verdicts] == [None] * 3
    crashed, failed = (
        run(misbehaving(how), vectors[:3]).verdicts for how in ("exits", "wrong and talks")
    )
    assert [v.stderr for v in crashed] == [None, "out of memory", None]
    assert [v.outcome for v in failed] == ["pass", "fail", "pass"]
    assert [v.stderr for v in failed] == [None, "assertion failed: x > 0", None]


def test_an_adapter_that_never_answers_is_given_up(vectors: tuple[Vector, ...]) -> None:
    report = run(misbehaving("never answers", timeout=0.3), vectors[:20])
    reasons = [str(v.reason) for v in report.verdicts]
    assert set(outcomes(report)) == {"error"}
    assert reasons[:3] == ["no reply within 0.3 s"] * 3
    assert reasons[3:] == ["not tried: 3 vectors in a row got no reply"] * 17


def test_a_handshake_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(START_LIMIT, "0.3")
    silent = CommandTarget("cmd:silent", "sleep 1000")
    with pytest.raises(TargetError, match=r"no handshake: no reply within 0.3 s \(MMCACHE_START"):
        silent.start()
    silent.stop()


_HANGS = """\
import sys, time
from mmcache_conformance.targets.start import tells_where
tells_where()
def wait():
    print("ready", flush=True); time.sleep(1000)
sys.stdin.readline()
wait()
"""


def test_an_import_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the seconds of the variable, and the message names the target and the variable."""
    (tmp_path / "never_ends.py").write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(START_LIMIT, "0.2")
    target = open_manager("never_ends:Manager")
    with pytest.raises(TargetError) as raised:
        target.start()
    target.stop()
    assert str(raised.value).startswith("never_ends:Manager is not loaded after 0.2 s: ")
    assert str(raised.value).endswith("MMCACHE_START_TIMEOUT=SECONDS gives it longer")
    assert "\n" not in str(raised.value)


def test_a_process_that_hangs_tells_where(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(_HANGS)
    process = Process([sys.executable, str(tmp_path / "hangs.py")], None)
    try:
        assert process.exchange(b"go", 60) == b"ready"
        assert where_it_is(process) == f"{tmp_path}/hangs.py, line 5 in wait"
    finally:
        process.kill()


def test_a_process_that_does_not_tell_where() -> None:
    process = Process(["sh", "-c", "trap : USR1; read line; echo ready; sleep 1000"], None)
    try:
        assert process.exchange(b"go", 60) == b"ready"
        assert where_it_is(process) is None
    finally:
        process.kill()


@pytest.mark.parametrize("said", ["x", "0", "-1", "nan", "inf", "86401"])
def test_a_limit_that_is_no_number_of_seconds(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(START_LIMIT, said)
    with pytest.raises(TargetNameError, match=f"MMCACHE_START_TIMEOUT={said}: not a number of"):
        CommandTarget("cmd:silent", "sleep 1000").start()


def test_without_a_limit_there_are_thirty_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/running-conformance.md and docs/adapter-protocol.md say."""
    monkeypatch.delenv(START_LIMIT, raising=False)
    assert start_seconds() == 30
    for page in ("running-conformance", "adapter-protocol"):
        assert "30 seconds" in (ROOT / "docs" / f"{page}.md").read_text()


def test_a_second_start_that_fails(tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
    report = run(misbehaving("starts once", tmp_path / "mark"), vectors[:8])
    assert outcomes(report) == ["pass"] + ["error"] * 7
    assert "the adapter does not start again: no handshake: the adapter exited with code 5" in str(
        report.verdicts[2].reason
    )
    assert str(report.verdicts[7].reason).startswith("not tried: the adapter does not start again")


def test_a_second_start_as_another(tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
    report = run(misbehaving("starts as another", tmp_path / "mark"), vectors[:4])
    assert outcomes(report) == ["pass", "error", "error", "error"]
    assert "says it is something else" in str(report.verdicts[3].reason)


def test_an_adapter_that_ignores_stop_is_ended(vectors: tuple[Vector, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmcache_conformance.targets.process.STOP_TIMEOUT", 0.3)
        children: list[subprocess.Popen[bytes]] = []

        def popen(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
            children.append(right(*words, **options))
            return children[-1]

        right = subprocess.Popen
        patch.setattr(subprocess, "Popen", popen)
        assert outcomes(run(misbehaving("ignores stop"), vectors[:2])) == ["pass", "pass"]
        assert [child.returncode for child in children] == [-signal.SIGKILL]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("/no/such/program", "/no/such/program cannot be run: No such file or directory"),
        ("cat", "not a reply to start of protocol 1 (Object contains unknown field `cmd`"),
        ("true", "no handshake: the adapter exited with code 0"),
        ("sh -c 'echo no GPU >&2; exit 4'", "exited with code 4; its standard error ends:\nno GPU"),
        (
            """sh -c 'read line; echo "{\\"protocol\\": 2}"; sleep 9'""",
            "not a reply to start of protocol 1",
        ),
    ],
)
def test_not_started(command: str, reason: str, vectors: tuple[Vector, ...]) -> None:
    report = run_target(CommandTarget("cmd:x", command), vectors, stretch=False)
    assert report.implementation is None
    assert reason in str(report.reason)


@pytest.mark.parametrize("command", ["", "   ", "'unbalanced"])
def test_not_a_command(command: str) -> None:
    with pytest.raises(TargetNameError):
        CommandTarget("cmd:x", command)


def test_the_python_adapter_answers_as_the_class_does(vectors: tuple[Vector, ...]) -> None:
    report = run(CommandTarget("cmd:x", REFERENCE), vectors)
    assert set(outcomes(report)) == {"pass"}
    assert report.implementation is not None
    assert report.implementation.language == "python"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "usage: "),
        (["no_such_module:Class"], 3, "no_such_module"),
        (["not a target"], 3, "does not name a target"),
        (["mmcache:EncoderCacheManager"], 3, "not a request of the adapter protocol"),
    ],
)
def test_the_python_adapter_explains_itself(words: list[str], code: int, says: str) -> None:
    line = b'{"cmd":"start","protocol":1}\nnonsense\n'
    command = [*shlex.split(PYTHON), *words]
    done = subprocess.run(command, input=line, capture_output=True)
    assert (done.returncode, says.encode() in done.stderr) == (code, True)
    assert b"Traceback" not in done.stderr


def test_a_large_case_blocks_nobody(vectors: tuple[Vector, ...]) -> None:
    # Many times the buffer of a pipe, both ways.
    one = next(v for v in vectors if v.manager == "encoder_cache")
    steps = one.steps + (one.steps[-1],) * 5_000
    large = msgspec.structs.replace(one, steps=steps)
    assert outcomes(run(CommandTarget("cmd:x", REFERENCE), (large,))) == ["pass"]


class TestSchema:
    @pytest.mark.parametrize("each", [9, pytest.param(1, marks=pytest.mark.slow)])
    def test_it_accepts_the_wire(self, vectors: tuple[Vector, ...], each: int) -> None:
        seen: list[bytes] = []
        target = CommandTarget("cmd:x", REFERENCE, trace=lambda way, line: seen.append(line))
        some = vectors[::each]
        run_target(target, some, stretch=False)
        assert len(seen) == 2 * (len(some) + 1)
        seen.append(msgspec.json.encode(Errored(1, "why")))
        seen.append(msgspec.json.encode(Stop()))
        validator = jsonschema.Draft202012Validator(adapter_schema())
        for line in seen:
            validator.validate(json.loads(line))

    def test_it_rejects(self) -> None:
        schema = adapter_schema()
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        wrong: list[object] = [{}, {"cmd": "pause"}, {"seq": 0, "answers": []}, {"seq": 0}, []]
        for message in wrong:
            assert not validator.is_valid(message)

    def test_expectations_are_not_sent(self, vectors: tuple[Vector, ...]) -> None:
        for vector in vectors:
            line = msgspec.json.encode(Run(1, case_of(vector)))
            for word in (b"expect", b"returns", b"observe", b"kills", b"variant"):
                assert b'"' + word not in line
        assert msgspec.json.encode(Start()) == b'{"cmd":"start","protocol":1}'


def test_a_slow_reader_of_a_long_batch_has_its_time_for_each_line(tmp_path: Path) -> None:
    """The batch is larger than any pipe, and takes longer than the time for one line."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import sys, time\n"
        "for line in sys.stdin.buffer:\n"
        "    time.sleep(0.02)\n"
        '    print("{}", flush=True)\n'
    )
    process = Process([sys.executable, str(slow)], None)
    try:
        process.post([b"x" * 20_000] * 50, 0.5)
        lines, wrong = process.collect(50, 0.5)
    finally:
        process.kill()
    assert (len(lines), wrong) == (50, None)
