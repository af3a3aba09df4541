"""A distribution on finitely many atoms, where it comes from, how it relaxes.

A distribution is *truncated* (:func:`truncate`), *relaxed* (:class:`Relaxed`) and *mapped* to
values.
"""
