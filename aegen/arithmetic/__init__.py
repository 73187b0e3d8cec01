"""The three benchmarks: exact values, candidates, tasks. Imports core and columns."""
