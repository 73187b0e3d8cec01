"""Whole columns of token sequences as flat arrays, and as Arrow.

Imports: core.
"""
