"""What a Python object is as a plain value: integers, truth values and texts of any library.

An engine counts with what its library gives it: `numpy.int64` and an integer tensor of torch are
integers to whoever uses them, and so they are here. Nothing is imported for it.
"""

from __future__ import annotations

import operator

__all__ = ["integer", "text", "truth"]

_TRUTH = {("numpy", "bool"), ("numpy", "bool_")}


def integer(value: object) -> int | None:
    """The integer that the value is to Python (`__index__`); None if it is none.

    A truth value is no integer, and a float is none even if it is whole: beyond 2**53 it would
    hide a difference of one.
    """
    if type(value) is int:
        return value
    if truth(value) is not None:
        return None
    try:
        # An int again also of a subclass, whose comparison might be its own.
        return int.__int__(operator.index(value))  # type: ignore[arg-type]
    except Exception:
        return None


def truth(value: object) -> bool | None:
    """The truth value, of Python, numpy, or as a tensor of torch with one; None if it is none."""
    if type(value) is bool:
        return value
    kind = type(value)
    one_of_torch = kind.__module__.partition(".")[0] == "torch" and (
        str(getattr(value, "dtype", "")) == "torch.bool" and getattr(value, "ndim", None) == 0
    )
    if one_of_torch or (kind.__module__, kind.__name__) in _TRUTH:
        return bool(value)
    return None


def text(value: object) -> str | None:
    """The text, also of a subclass of `str` such as `numpy.str_`; None if it is none."""
    return str.__str__(value) if isinstance(value, str) else None
