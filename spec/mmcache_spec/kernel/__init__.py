"""The language: terms, transition systems, goals, lemmas, mutants. Calls no solver."""
