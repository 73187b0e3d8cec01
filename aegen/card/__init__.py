"""The card of a dataset: page, pictures, Croissant.

Imports: core, columns, files, engines, arithmetic, dataset.
"""
