"""Hand a finished dataset on, and fetch one.

Imports: core, columns, files, engines, pairs, dataset, card.
"""
