"""The three benchmarks: exact values, candidate equations, tasks.

Imports: core, columns.
"""
