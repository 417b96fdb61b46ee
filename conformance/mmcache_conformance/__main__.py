"""`python -m mmcache_conformance`."""

from .cli import main

if __name__ == "__main__":
    main()
