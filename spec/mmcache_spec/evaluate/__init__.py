"""The five readers of the terms: z3 without bounds and within, plain Python, compiled, text."""
