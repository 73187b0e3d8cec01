"""From shards to batches of id tensors.

Imports: core.
"""
