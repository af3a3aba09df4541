"""Backpropagate through discrete random variables, in PyTorch.

- ``rsample(q)``: exact draws that carry a gradient.
- ``MidCDF()``, ``RLOO(4)``, ...: gradient estimators, ``estimator.expect(cost, q)``.
- ``differentiable()``: a block whose draws carry gradients, for simulators and other programs.
- ``OneHot``, ``Subset``, ``PlackettLuce``, ``Skellam``, ``Finite``: distributions.
- ``truncate``, ``gumbel_relax``, ``Relaxed``: finitely many atoms, and their relaxation.
- ``lab.measure``: bias, variance and cost of estimators, on your own loss.
- ``nn``: posteriors and priors for your own model.
"""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import lab as lab
    from . import nn as nn
    from .distributions import *  # noqa: F403
    from .estimators import *  # noqa: F403
    from .gradients import *  # noqa: F403
    from .programs import *  # noqa: F403

_LAZY = {
    "pyro": (".integrations.pyro", "pyro"),
    "testing": (".lab.testing", "apps"),
}
"""Names that need more than torch: where they are, and the extra that brings what they need."""


def __getattr__(name: str) -> Any:
    """Import torch, and all that it is enough for, when a name is asked for.

    Help and listings of the command line need none of it, and torch takes seconds.
    """
    if name not in _LAZY:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _core(name)
    where, extra = _LAZY[name]
    try:
        module = import_module(where, __name__)
    except ImportError as error:
        raise ImportError(
            f"gengs.{name} needs more packages ({error.name}): pip install 'gengs[{extra}]' "
            f"(in a clone: pip install '.[{extra}]')"
        ) from error
    return getattr(module, name, module)


def _core(name: str) -> Any:
    parts = {part: import_module(f".{part}", __name__) for part in ("lab", "nn")}
    names = {"__version__": __version__, **parts}
    for part in ("distributions", "gradients", "estimators", "programs"):
        module = import_module(f".{part}", __name__)
        names |= {public: getattr(module, public) for public in module.__all__}
    globals().update(names, __all__=list(names))
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*_core("__all__"), *_LAZY})
