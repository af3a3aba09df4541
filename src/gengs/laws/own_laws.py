"""Laws of somebody's own: which of a class's methods say what it is.

A subclass of ``Poisson`` with a ``sample`` or a ``log_prob`` of its own is another law, and the
closed forms of the Poisson are not its own. What can be said about it:

- a ``log_prob`` that is at least as new as ``sample`` speaks for its draws: its probabilities are
  a table like any other;
- a ``sample`` that is newer than ``log_prob`` is a small program, and nothing else is known.
"""

__all__ = ["has_own_pmf", "is_the_law"]

from torch.distributions import Distribution


def is_the_law(law: Distribution, family: type) -> bool:
    """Whether ``law`` is one of ``family``, drawn and weighed as that is.

    Pyro's laws have methods of their own, and are torch's of the same name.
    """
    if not isinstance(law, family):
        return False
    kind = type(law)
    if all(getattr(kind, name) is getattr(family, name) for name in ("sample", "log_prob")):
        return True
    return kind.__module__.startswith("pyro.") and kind.__name__ == family.__name__


def has_own_pmf(law: Distribution) -> bool:
    """Whether ``log_prob`` speaks for ``sample``: no class after the one that has it redraws."""
    weighs, draws = (_age(type(law), name) for name in ("log_prob", "sample"))
    return weighs <= draws and type(law).log_prob is not Distribution.log_prob


def _age(kind: type, method: str) -> int:
    return next(i for i, cls in enumerate(kind.__mro__) if method in vars(cls))
