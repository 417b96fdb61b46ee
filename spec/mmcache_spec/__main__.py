"""`python -m mmcache_spec`."""

from .cli import main

main()
