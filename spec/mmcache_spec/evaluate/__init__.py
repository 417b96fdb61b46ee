"""The five readers of the term language: z3 without and with bounds, plain Python, compiled, text."""
