"""The contract between specification and kit: formats, clauses, and the vectors themselves."""
