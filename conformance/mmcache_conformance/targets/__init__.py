"""What is tested: a Python class, a file or release of vLLM, a command."""
