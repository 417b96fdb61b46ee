"""A whole running vLLM as an engine: its own runner, its own model code, on a CPU."""
