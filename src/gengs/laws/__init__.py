"""One file per distribution, with everything that gengs knows of it, and nothing of it elsewhere.

``law.py`` has the record, the registry and the one identity test. Rooms: ``poisson.py``,
``binomial.py`` (and Bernoulli), ``negative_binomial.py``, ``geometric.py``, ``categorical.py``,
``one_hot.py``, ``multinomial.py``, ``subset.py``, ``ranking.py``, ``skellam.py``, ``mixtures.py``,
``pyro_compounds.py``; tables are in ``finite_law.py``, anything else in ``by_log_prob.py``. What
fills a room has files beside it, by its name (``one_hot_mid.py``, ``subset_*.py``,
``ranking_*.py``). What rooms share: the line of counts
(``line.py``, ``trials.py``), balls in boxes (``boxes.py``), tables in order (``ordered_table.py``).
"""
