"""One job for an hour: what of it grows?

``program.py`` is the job, ``feed.py`` what keeps coming for it; ``life.py`` runs it in a process of its own, and
``processes.py``, ``disk.py`` and ``heap.py`` say what it takes. ``samples.py`` is what was seen, ``findings.py`` what
follows from it, ``page.py`` and ``picture.py`` what a reader gets.
"""
