"""The length of shortest paths, by breadth-first search through all the worlds of a scope.

A world is chosen, and searched with sizes and ages as symbols (`evaluate.stepping`). The search
remembers every question that it asked about sizes and capacity. All worlds that answer these
questions alike are then done with, whatever their numbers; Z3 is asked for one that is not, until
there is none. So what is not found within the scope is not there, for any sizes.
Elements that nothing tells apart are interchangeable: of states that differ only in their names,
one is looked at; and of the ways to give hashes to inputs, one of each kind.

`relevance` says what of a system matters, `patterns` which kinds of worlds a scope has, `renaming`
applies a renaming to states, `starts` lists the states in which a pass may begin, `walk` searches
one world, `kinds` all worlds of a kind, and `search` all kinds.
"""

from .kinds import Found, Progress
from .search import MOST_STATES, quickest
from .walk import TooMuch

__all__ = ["MOST_STATES", "Found", "Progress", "TooMuch", "quickest"]
