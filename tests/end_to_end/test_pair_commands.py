"""Pairs behind the adapter protocol: the same verdicts, and what an adapter may not say."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.errors import AdapterError, TargetError
from mmcache_conformance.open import open_target, open_targets
from mmcache_conformance.pairs.command import CommandPair
from mmcache_conformance.pairs.open import open_pair
from mmcache_conformance.pairs.protocol import PairAnswer, PairTarget, pair_case
from mmcache_conformance.suites.load import PAIRS, load_suite
from mmcache_conformance.targets.command import CommandTarget
from mmcache_conformance.verdicts.model import Verdict
from mmcache_conformance.verdicts.run import run_target
from mmcache_vectors.pair import ClearSender, Deliver, Invalidate, PairVector, Withdraw

VECTORS = load_suite(None, PAIRS)
BAD = "tests.known_bad.pairs"
RIGHT = "mmcache.processor_cache:Sender,mmcache.processor_cache:Receiver"


def run(*words: Any) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def served(what: str) -> str:
    return f"cmd:{shlex.quote(sys.executable)} -m mmcache_conformance.adapters.python {what}"


def told(target: PairTarget) -> list[tuple[PairAnswer, ...]]:
    target.start()
    try:
        return [target.play(pair_case(vector)) for vector in VECTORS]
    finally:
        target.stop()


@pytest.mark.parametrize(
    "name",
    [
        f"pair:{RIGHT}",
        f"pair:{BAD}:UndoingSender,mmcache.processor_cache:Receiver",
        f"pair:{BAD}:LosingSender,{BAD}:UnorderedReceiver",
        f"pair:mmcache.processor_cache:Sender,{BAD}:AssertingReceiver",
        f"pair:{BAD}:HidingSender,mmcache.processor_cache:Receiver",
    ],
)
def test_a_pair_answers_the_same_through_the_protocol(name: str) -> None:
    here = told(open_pair(name, in_process=True))
    behind = open_pair(name)
    assert isinstance(behind, CommandPair)
    assert told(behind) == here


def test_a_command_that_is_a_pair_is_tested_as_one() -> None:
    target = served(f"pair:{BAD}:LosingSender,mmcache.processor_cache:Receiver")
    done = run("run", "-q", target)
    assert done.exit_code == 1, done.output
    assert "processor_rejected_is_lost" in done.output
    assert run("run", "-q", served("reference-pair")).exit_code == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pair:nowhere:A,nowhere:B", "nowhere:A"),
        (f"pair:{BAD}:Nobody,{BAD}:StaleReceiver", "Nobody"),
        (served("mmcache:EncoderCacheManager"), "says that it is no pair"),
    ],
)
def test_what_cannot_be_started_says_why(name: str, says: str) -> None:
    found: Any = open_pair(name) if name.startswith("pair:") else CommandPair(_command(name))
    with pytest.raises(TargetError, match=says):
        found.start()


def _command(name: str) -> CommandTarget:
    found = open_target(name)
    assert isinstance(found, CommandTarget)
    return found


def test_what_a_class_does_to_its_process_costs_its_vector_only(tmp_path: Path) -> None:
    """It ends its process at a clear, and hangs where it is told of a miss: P10."""
    (tmp_path / "hostile_pair.py").write_text(
        "import os, time\nfrom mmcache.processor_cache import Sender\n"
        "class Hostile(Sender):\n"
        "    def clear(self): os._exit(0)\n"
        "    def invalidate(self, key):\n        while True: time.sleep(0.01)\n"
        "print('this is no reply')\n"
    )
    name = "pair:hostile_pair:Hostile,mmcache.processor_cache:Receiver"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        few = [v for v in VECTORS if len(v.steps) < 9]
        report = run_target(open_pair(name, timeout=8), few)
    assert report.reason is None
    found = {v.id: v for v in report.verdicts}
    for vector in few:
        verdict = found[vector.id]
        if _calls(vector, ClearSender):
            assert verdict.outcome == "error"
            assert "exited with code 0" in str(verdict.reason)
        elif _calls(vector, Invalidate):
            assert verdict.outcome == "fail"
            assert "P10" in (verdict.broke or ())
        else:
            assert verdict.outcome == "pass", verdict
    assert {v.outcome for v in report.verdicts} == {"pass", "fail", "error"}


def _calls(vector: PairVector, kind: type) -> bool:
    return any(isinstance(step.call, kind) for step in vector.steps)


# --- what an adapter may not say ----------------------------------------------------------------

SAYS = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["cmd"] == "start":
        reply = {"protocol": 1, "implementation": {"name": "x", "language": "y"},
                 "capabilities": {"processor_cache": %(offered)s}}
    elif asked["cmd"] == "stop":
        break
    else:
        reply = {"seq": asked["seq"]}
        if asked["cmd"] == "pair":
            items = {r["request_id"]: r["items"] for r in asked["parameters"]["requests"]}
            reply.update(%(made)s)
        else:
            call = asked["call"]
            name = call.get("request")
            names = [f"{name}/{k}" for k in range(len(items.get(name, ())))]
            right = {"process": {"sent": [True] * len(names)}, "deliver": {"data": names},
                     "withdraw": {"travels": True}}.get(call["op"], {})
            reply.update(right)
            reply.update(%(said)s)
    print(json.dumps(reply), flush=True)
"""


def saying(folder: Path, said: str = "{}", offered: str = "[]", made: str = "{}") -> str:
    program = folder / "says.py"
    program.write_text(SAYS % {"offered": offered, "made": made, "said": said})
    return f"cmd:{shlex.quote(sys.executable)} {shlex.quote(str(program))}"


def first_verdict(target: str) -> Verdict:
    return run_target(open_target(target), VECTORS[:1]).verdicts[0]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('{"sent": [True] * 9}', "`sent` has 9 answers about"),
        ('{"sent": None}', "`sent` has nothing about"),
        ('{"sent": "yes"}', "not a reply"),
        ('{"more": 1}', "unknown field"),
        ('{"seq": 99}', "a reply to request 99"),
        ('{"sender": []}', "sender is no capability, but was given"),
        ('{"missed": ["A"]}', "`missed` is an answer to `deliver`"),
        ('{"ended": True}', "it says `ended` or `hangs`, and no `error`"),
    ],
)
def test_what_makes_no_sense_is_an_error(said: str, why: str, tmp_path: Path) -> None:
    verdict = first_verdict(saying(tmp_path, said))
    assert verdict.outcome == "error"
    assert why in str(verdict.reason)


def test_what_was_promised_must_be_shown(tmp_path: Path) -> None:
    verdict = first_verdict(saying(tmp_path, offered='["receiver"]'))
    assert verdict.outcome == "error"
    assert "receiver was left out" in str(verdict.reason)


def test_a_pair_that_is_not_made_is_no_verdict_on_it(tmp_path: Path) -> None:
    verdict = first_verdict(saying(tmp_path, made='{"error": "no memory"}'))
    assert (verdict.outcome, "it makes no pair: no memory" in str(verdict.reason)) == (
        "error",
        True,
    )


def test_a_misspelt_capability_is_an_error(tmp_path: Path) -> None:
    done = run("run", saying(tmp_path, offered='["recever"]'))
    assert done.exit_code == 3
    assert "names the capability 'recever'" in done.output


def test_without_a_capability_what_needs_it_is_skipped_or_travels(tmp_path: Path) -> None:
    """Of a sender that sends all data every time; no call is made that it lacks."""
    target = open_target(saying(tmp_path))
    assert isinstance(target, CommandPair)
    target.start()
    withdraws = next(v for v in VECTORS if _calls(v, Withdraw))
    answers = target.play(pair_case(withdraws))
    travels = [a.travels for a, s in zip(answers, withdraws.steps, strict=False)
               if isinstance(s.call, Withdraw)]  # fmt: skip
    assert set(travels) == {True}
    invalidates = next(v for v in VECTORS if _calls(v, Invalidate))
    assert target.play(pair_case(invalidates))[-1].not_offered == "invalidate"
    target.stop()


def test_how_a_call_failed_is_what_the_adapter_says(tmp_path: Path) -> None:
    """P9: whether the request ends, or the engine with it."""
    delivers = next(v for v in VECTORS if _calls(v, Deliver))
    for said, ended in (('"error": "x"', False), ('"error": "x", "ended": True', True)):
        only = f'({{{said}, "data": None}} if call["op"] == "deliver" else {{}})'
        target = open_target(saying(tmp_path, only))
        assert isinstance(target, CommandPair)
        target.start()
        last = target.play(pair_case(delivers))[-1]
        target.stop()
        assert (last.error, last.ended) == ("x", ended)


def test_a_program_may_be_all_three(tmp_path: Path) -> None:
    program = saying(tmp_path)
    text = (tmp_path / "says.py").read_text()
    more = '"encoder_cache": ["allocate", "can_allocate", "check_and_update_cache", '
    more += '"free_encoder_input", "get_freed_mm_hashes"], "engine": [], "processor_cache"'
    (tmp_path / "says.py").write_text(text.replace('"processor_cache"', more, 1))
    kinds = [type(part).__name__ for part in open_targets(program)]
    assert kinds == ["CommandTarget", "CommandEngine", "CommandPair"]


def test_a_reply_to_a_call_that_is_not_read_is_surplus(tmp_path: Path) -> None:
    program = saying(tmp_path)
    text = (tmp_path / "says.py").read_text()
    (tmp_path / "says.py").write_text(text + "    print(json.dumps(reply), flush=True)\n")
    with pytest.raises((AdapterError, TargetError)):
        told_once(open_target(program))


def told_once(target: Any) -> None:
    target.start()
    target.play(pair_case(VECTORS[0]))
