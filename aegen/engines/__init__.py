"""Where the work runs: this machine or a dask cluster.

Imports: core.
"""
