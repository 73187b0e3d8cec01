"""Files of this machine and of storages: places, atomic writes, Parquet within limits.

Imports: core.
"""
