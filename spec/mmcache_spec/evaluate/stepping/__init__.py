"""All steps out of a state, where sizes, capacity and ages are symbols: one world stands for many.

`evaluate.compiled` knows the size of every hash. Here an integer of the model is a linear form
(`forms`), and comparisons ask for its sign in one world and remember what they asked. Every world
that gives the same answers to the same questions has the same states and steps: a search through
one is a search through all of them.

`layout` says where in a state what is, `ranks` makes the order of ages out of ages, `writing` makes
code, `arguments` tries integer arguments, and `stepper` puts them together.
"""

from .forms import Form, Question, Signs, Symbols, Undetermined, coefficients, packed
from .layout import Layout, Packed, is_integer
from .stepper import FreeVariables, Stepper, Successor

__all__ = [
    "Form",
    "FreeVariables",
    "Layout",
    "Packed",
    "Question",
    "Signs",
    "Stepper",
    "Successor",
    "Symbols",
    "Undetermined",
    "coefficients",
    "is_integer",
    "packed",
]
