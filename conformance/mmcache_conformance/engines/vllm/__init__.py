"""vLLM's own scheduler, made on a CPU, with a mirrored worker."""
