"""The benchmark of the field: five programs on eventide and its peers: `./run peers`; docs/peers.md tells of it."""
