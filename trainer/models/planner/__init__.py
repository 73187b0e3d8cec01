"""The planner: an agent of our own that learns in minutes on a CPU.

It scores whole edit scripts, plays the first edit of the best one, and plans again. Two small networks share
the work: one says *where* (the plan), one says *what* (the token), and the token network gets a clean view of
what it must compute from. Which view that is follows from the slots that the shards declare and from the
demonstrations, by the rule in :func:`trainer.models.planner.knowledge.study`.
"""

from __future__ import annotations
