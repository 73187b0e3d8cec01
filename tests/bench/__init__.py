"""Benchmarks: ratios measured side by side in one run (``make bench``). They print; they assert nothing."""
