"""An adapter of the reference that goes wrong at its second vector, in the way that it is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from mmcache_conformance.targets.open import open_manager
from mmcache_conformance.targets.wire import About, Message, Ran, Run, Start, Started

HOW = sys.argv[1]
MARK = Path(sys.argv[2]) if len(sys.argv) > 2 else None
"""A file that a first process leaves for a second one."""

target = open_manager("reference")
found = target.start()
decode = msgspec.json.Decoder(Message).decode


def say(text: bytes) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def document(answers: object) -> Any:
    return json.loads(msgspec.json.encode(answers))


def wrong(run: Run, good: bytes) -> None:
    answers = document(Ran(run.seq, target.run(run.case)))["answers"]
    if HOW == "exits":
        sys.stderr.write("out of memory\n")
        sys.stderr.flush()
        os._exit(7)
    elif HOW == "segfaults":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif HOW == "hangs":
        sys.stderr.write("thinking\n")
        sys.stderr.flush()
        time.sleep(1000)
    elif HOW == "half a line":
        say(good[: len(good) // 2])
        time.sleep(1000)
    elif HOW == "half a line and exits":
        say(good[: len(good) // 2])
        os._exit(0)
    elif HOW == "closes its output":
        os.close(1)
        time.sleep(1000)
    elif HOW == "garbage":
        say(b"hello\n")
    elif HOW == "not utf-8":
        say(b'{"seq":2,"answers":[{"error":"\xff"}]}\n')
    elif HOW == "nested":
        say(b"[" * 100_000 + b"\n")
    elif HOW == "empty line":
        say(b"\n")
    elif HOW == "endless":
        while True:
            say(b"x" * 65536)
    elif HOW == "surplus line":
        say(good + good)
    elif HOW == "surplus, later":
        say(good)
        time.sleep(0.2)
        say(b"by the way\n")
    elif HOW == "prints before":
        say(b"debug: running\n" + good)
    elif HOW == "wrong sequence":
        say(json.dumps({"seq": run.seq + 1, "answers": answers}).encode() + b"\n")
    elif HOW == "sequence is a text":
        say(json.dumps({"seq": str(run.seq), "answers": answers}).encode() + b"\n")
    elif HOW == "no answers":
        say(json.dumps({"seq": run.seq, "answers": []}).encode() + b"\n")
    elif HOW == "one too few":
        say(json.dumps({"seq": run.seq, "answers": answers[:-1]}).encode() + b"\n")
    elif HOW == "one too many":
        say(json.dumps({"seq": run.seq, "answers": [*answers, answers[-1]]}).encode() + b"\n")
    elif HOW == "wrong and one too few":
        answers[0]["observed"]["num_free_slots"] = 99
        say(json.dumps({"seq": run.seq, "answers": answers[:-1]}).encode() + b"\n")
    elif HOW == "answers ahead":
        ahead = msgspec.json.encode(Ran(run.seq + 1, target.run(run.case)))
        say(good)
        time.sleep(0.2)
        say(ahead + b"\n")
    elif HOW == "answers after a failure":
        failed = [{"error": "no"}, *answers[1:]]
        say(json.dumps({"seq": run.seq, "answers": failed}).encode() + b"\n")
    elif HOW == "a number for a Boolean":
        answers[0]["returns"] = 1
        say(json.dumps({"seq": run.seq, "answers": answers}).encode() + b"\n")
    elif HOW == "leaves out what it promised":
        del answers[0]["observed"]["cached"]
        say(json.dumps({"seq": run.seq, "answers": answers}).encode() + b"\n")
    elif HOW == "unknown field":
        say(json.dumps({"seq": run.seq, "answers": answers, "passed": True}).encode() + b"\n")
    elif HOW == "gives up":
        say(json.dumps({"seq": run.seq, "errored": "no GPU left"}).encode() + b"\n")
    elif HOW == "leaves a child with its output":
        child = subprocess.Popen(["sleep", "1000"])
        if MARK is not None:
            MARK.write_text(str(child.pid))
        os._exit(3)
    else:
        raise SystemExit(f"unknown: {HOW}")


if HOW == "starts once" and MARK is not None:
    if MARK.exists():
        sys.stderr.write("the device is busy\n")
        raise SystemExit(5)
    MARK.touch()

count = 0
capabilities = dict(found.capabilities)
for line in sys.stdin.buffer:
    request = decode(line)
    if isinstance(request, Start):
        name = found.name
        if HOW == "starts as another" and MARK is not None:
            name = "another" if MARK.exists() else name
            MARK.touch()
        about = About(name, "python")
        say(msgspec.json.encode(Started(1, about, dict(capabilities))) + b"\n")
    elif isinstance(request, Run):
        count += 1
        good = msgspec.json.encode(Ran(request.seq, target.run(request.case))) + b"\n"
        again = HOW in {"starts once", "starts as another"}
        if HOW == "talks to itself":
            sys.stderr.write("x" * 200_000 + "\n")
            sys.stderr.flush()
            say(good)
        elif HOW == "never answers":
            time.sleep(1000)
        elif HOW == "ignores stop":
            say(good)
        elif HOW == "wrong and talks" and count == 1:
            sys.stderr.write("all is well\n")
            sys.stderr.flush()
            say(good)
        elif HOW == "wrong and talks" and count == 2:
            answers = document(Ran(request.seq, target.run(request.case)))["answers"]
            answers[0] = {"error": "an assertion"}
            sys.stderr.write("assertion failed: x > 0\n")
            sys.stderr.flush()
            say(json.dumps({"seq": request.seq, "answers": answers[:1]}).encode() + b"\n")
        elif count == 2 and again:
            os._exit(1)
        elif count == 2 and HOW != "wrong and talks":
            wrong(request, good)
        else:
            say(good)
    elif HOW == "ignores stop":
        time.sleep(1000)
    else:
        break
