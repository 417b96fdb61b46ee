"""The same definitions as fast Python that is written once and serves every world.

`evaluate.compiled` writes a function for each call of each world, with all that the world says put
in: the fastest code, and dear to make. Here a function is written for each *action*, and what a
world says (which input carries which hash, how large it is, how many there are) is read from tables
when the function runs. A caller that goes from world to world pays a fraction of a millisecond for
each.

A set is an integer with one bit an element, as `evaluate.compiled` has it. What is said of every
element of a sort is worked out for all elements at once by operations on bits, where that can be,
and element by element where it cannot.

`tables` is what the code reads, `writing` makes the code of a term, and `system` puts it together.
"""

from .system import Packed, UniformCall, UniformSystem, UniformWorld

__all__ = ["Packed", "UniformCall", "UniformSystem", "UniformWorld"]
