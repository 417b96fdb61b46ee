"""Whole schedulers: workloads played pass by pass, and judged by the clauses of the engine."""
