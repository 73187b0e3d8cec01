"""Datasets as pages for a browser, with the stepper that the trainer's pages have too.

Imports: core, experts, dataset.
"""
