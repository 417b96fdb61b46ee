"""What is asked of a transition system: proofs, counterexamples, coverage. Knows no protocol."""
