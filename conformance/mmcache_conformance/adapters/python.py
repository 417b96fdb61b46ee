"""Serve a Python class over the adapter protocol, in a process of its own.

    python -m mmcache_conformance.adapters.python module:Class[,module:Class]

An engine (`reference-pass`, `vllm-scheduler`) and a pair (`reference-pair`,
`pair:module:Sender,module:Receiver`) are served in the same way.

The harness gives a class a process of its own anyway; this is for a class that lives in another
environment: run it with the Python of that.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

import msgspec

from ..engines.open import is_engine_name, open_engine
from ..errors import TargetError, TargetNameError, describe_exception
from ..implementation import Kind
from ..pairs.open import is_pair_name, open_pair
from ..targets.open import open_manager
from ..targets.protocol import MANAGERS, ManagerTarget, TogetherTarget
from ..targets.python import PythonTarget
from ..targets.wire import (
    BESIDE_FEATURE,
    SNAPSHOTS_FEATURE,
    WATCHED_FEATURE,
    About,
    Errored,
    Message,
    Ran,
    Run,
    Start,
    Started,
    Stop,
    Workload,
)
from .engine import serve_engine
from .kept import KeptManagers
from .pair import ServedPair, serve_pair

__all__ = ["main", "serve"]


def serve(
    target: ManagerTarget,
    requests: BinaryIO,
    replies: BinaryIO,
    *,
    interrupts_are_its_own: bool = False,
) -> None:
    """Answer requests until `stop` or the end of the input. Raises `TargetError`.

    A KeyboardInterrupt ends it, but where no user can have pressed Ctrl-C: there it is a failure
    of the class as any other.
    """
    decode = msgspec.json.Decoder(Message, strict=True).decode
    encode = msgspec.json.Encoder().encode
    kept = KeptManagers(target) if isinstance(target, PythonTarget) else None
    for line in requests:
        request = decode(line)
        if isinstance(request, Run):
            try:
                reply = encode(_ran(target, kept, request))
            except KeyboardInterrupt as error:
                if not interrupts_are_its_own:
                    raise
                reply = encode(Errored(request.seq, describe_exception(error)))
            except BaseException as error:
                reply = encode(Errored(request.seq, describe_exception(error)))
        elif isinstance(request, Start):
            reply = encode(_introduction(target))
        elif isinstance(request, Stop):
            return
        else:
            what = "engine" if isinstance(request, Workload) else "pair of processor caches"
            reply = encode(Errored(request.seq, f"it serves no {what}"))
        replies.write(reply + b"\n")
        replies.flush()


def _ran(target: ManagerTarget, kept: KeptManagers | None, request: Run) -> Ran:
    if request.restore is not None or request.snapshot is not None or request.drop:
        if kept is None:
            raise TargetError("no snapshots are kept here, and one was asked for")
        return kept.ran(request)
    if not request.beside:
        return Ran(request.seq, target.run(request.case))
    if not isinstance(target, TogetherTarget):
        raise TargetError("one manager at a time, and more were asked for")
    answers, *beside = target.run_together((request.case, *request.beside))
    return Ran(request.seq, answers, tuple(beside))


def _introduction(target: ManagerTarget) -> Started:
    found = target.start()
    about = About(found.name, found.language, found.version, found.source)
    offered: dict[Kind, tuple[str, ...]] = {
        m: found.capabilities[m] for m in MANAGERS if m in found.capabilities
    }
    together = isinstance(target, TogetherTarget) and target.runs_together
    features = [BESIDE_FEATURE] if together else []
    features += [SNAPSHOTS_FEATURE, WATCHED_FEATURE] if isinstance(target, PythonTarget) else []
    return Started(1, about, offered, tuple(features))


def main(arguments: list[str]) -> int:
    """The exit code: 0 after `stop`, 2 for a wrong command line, 3 if the class does not load."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m mmcache_conformance.adapters.python module:Class\n")
        return 2
    # Whatever the class prints, also from C, is a log: only replies go to standard output.
    with os.fdopen(os.dup(1), "wb") as replies:
        os.dup2(2, 1)
        try:
            if is_engine_name(arguments[0]):
                serve_engine(open_engine(arguments[0]), sys.stdin.buffer, replies)
            elif is_pair_name(arguments[0]):
                pair = open_pair(arguments[0], in_process=True)
                assert isinstance(pair, ServedPair)
                serve_pair(pair, sys.stdin.buffer, replies)
            else:
                serve(open_manager(arguments[0], in_process=True), sys.stdin.buffer, replies)
        except (TargetError, TargetNameError) as error:
            sys.stderr.write(f"{error}\n")
            return 3
        except msgspec.DecodeError as error:
            sys.stderr.write(f"not a request of the adapter protocol: {error}\n")
            return 3
        except (KeyboardInterrupt, BrokenPipeError):
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
