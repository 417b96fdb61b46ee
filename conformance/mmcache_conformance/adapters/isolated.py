"""The process of a foreign Python class: what `targets/isolated.py` starts.

It loads what it is told to, says what is known of it, and then serves it as any adapter does.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

import msgspec

from ..errors import TargetError, describe_exception
from ..targets.isolated import Begin, Begun, Loaded, Look, Refused
from ..targets.open import load_target
from ..targets.python import PythonTarget
from ..targets.start import tells_where
from .python import serve

__all__ = ["main"]


def main() -> NoReturn:
    """Serve until `stop` or the end of the input."""
    # Whoever presses Ctrl-C means the harness: a KeyboardInterrupt here is the class's own.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What the class prints, also from C, is a log, and it finds nothing to read.
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    tells_where()
    target, introduction = _loaded(msgspec.json.decode(requests.readline(), type=Begin))
    replies.write(msgspec.json.encode(introduction) + b"\n")
    replies.flush()
    begun = False
    if target is not None:
        look = msgspec.json.decode(requests.readline(), type=Look)
        seen = _begun(target, look)
        replies.write(msgspec.json.encode(seen) + b"\n")
        replies.flush()
        begun = isinstance(seen, Begun)
    if target is not None and begun:
        serve(target, requests, replies, interrupts_are_its_own=True)
    # Threads that the class has left behind must not keep the process.
    os._exit(0)


def _loaded(begin: Begin) -> tuple[PythonTarget | None, Loaded | Refused]:
    """The target whose classes are loaded, or why there is none."""
    try:
        target = load_target(begin.load, begin.configuration)
        target.load()
        return target, Loaded()
    except BaseException as error:
        return None, _refused(error)


def _begun(target: PythonTarget, look: Look) -> Begun | Refused:
    """What the started target is, or why it cannot be started."""
    try:
        return Begun(target.start(touch=look.touch))
    except BaseException as error:
        return _refused(error)


def _refused(error: BaseException) -> Refused:
    reason = str(error) if isinstance(error, TargetError) else describe_exception(error)
    return Refused(reason or type(error).__name__)
