"""The whole data stage: what is missing is written, shard by shard, and the folder finished.

Imports: core, columns, files, engines, arithmetic, pairs, experts, dataset, card.
"""
