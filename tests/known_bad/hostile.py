"""Managers that decide rightly and do to their process what a target must not do."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import Any

from mmcache import EncoderCacheManager, Request

__all__ = ["HOSTILE", "IN_PROCESS"]


class _InACall(EncoderCacheManager):
    """Goes wrong in a case, and not in what is tried on two managers before the first."""

    made = 0

    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)
        _InACall.made += 1
        self.number = _InACall.made

    def allocate(self, request: Request, input_id: int) -> None:
        if self.number > 2:
            self.go_wrong()
        super().allocate(request, input_id)

    def go_wrong(self) -> None:
        raise NotImplementedError


class ExitsInACall(_InACall):
    def go_wrong(self) -> None:
        raise SystemExit(0)


class ExitsHard(_InACall):
    def go_wrong(self) -> None:
        os._exit(0)


class ExitsInAProperty(EncoderCacheManager):
    @property
    def cached(self) -> Any:
        raise SystemExit(0)

    @cached.setter
    def cached(self, value: object) -> None:
        pass


class Interrupts(_InACall):
    def go_wrong(self) -> None:
        raise KeyboardInterrupt


class InterruptsAtOnce(EncoderCacheManager):
    def __init__(self, cache_size: int) -> None:
        raise KeyboardInterrupt


class Hangs(_InACall):
    def go_wrong(self) -> None:
        time.sleep(600)


class Shouts(EncoderCacheManager):
    """Writes where replies and reports are written, and answers rightly."""

    def allocate(self, request: Request, input_id: int) -> None:
        os.write(1, b'{"seq":1,"answers":[]}\n')
        print("shouted")
        super().allocate(request, input_id)


class LeavesAThread(EncoderCacheManager):
    """A thread that never ends would keep the process for ever; it answers rightly."""

    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)
        if threading.active_count() < 3:
            threading.Thread(target=time.sleep, args=(600,)).start()


class LeavesAProcess(EncoderCacheManager):
    """A process in a session of its own, which says who it is; it answers rightly."""

    def __init__(self, cache_size: int) -> None:
        super().__init__(cache_size)
        note = os.environ.get("NOTE_OF_ITS_PROCESS")
        if note and not os.path.exists(note):
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            with open(note, "w") as file:
                file.write(f"{child.pid}\n")


HOSTILE = {
    "ExitsInACall": "fails",
    "ExitsHard": "fails",
    "ExitsInAProperty": "cannot be compared",
    "Interrupts": "fails",
    "InterruptsAtOnce": "does not start",
    "Hangs": "fails",
    "Shouts": "passes",
    "LeavesAThread": "passes",
}
"""What must come of each, by its name."""
IN_PROCESS = ("ExitsInACall", "ExitsHard", "Shouts", "LeavesAThread")
"""Those that can be run in the process of the command at all."""
