"""Publish a finished dataset, and download one.

Imports: core, columns, files, engines, dataset, card.
"""
