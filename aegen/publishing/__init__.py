"""Hand a finished dataset on, and fetch one.

Imports: core, files, engines, pairs, dataset, card.
"""
