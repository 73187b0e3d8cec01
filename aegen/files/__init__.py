"""Files on this machine and on storages: paths, atomic writes, Parquet within limits.

Imports: core.
"""
