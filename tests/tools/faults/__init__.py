"""Semantic faults in the C++ example: does the kit notice each of them?"""
