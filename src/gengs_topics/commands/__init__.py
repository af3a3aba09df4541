"""Topics of your own text: ``gengs topics fit``, ``gengs topics apply``, ``gengs topics show``.

    documents → vocabulary → counts on disk → training with checkpoints → topics, mixtures, a page

Documents are read one at a time and counts are mapped from disk, so that the corpus may be larger
than memory. A command that is killed goes on with ``--resume``.
"""
