"""Adapters that ship: programs that serve an implementation over the adapter protocol.

`python` serves any Python class. `cpp/` holds a header for C++17 and an example that uses it.
"""
