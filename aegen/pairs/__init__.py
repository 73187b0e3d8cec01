"""Where text pairs come from: a spec, or files.

Imports: core, columns, files, engines, arithmetic.
"""
