"""A dataset folder: shards, manifest, contract, verification, statistics.

Imports: core, columns, files, engines, arithmetic, pairs, experts.
"""
