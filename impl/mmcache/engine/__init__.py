"""A small engine around the ledger: scheduling pass, KV blocks and worker, for tests."""
