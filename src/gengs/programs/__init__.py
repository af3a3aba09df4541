"""Programs: the discrete draws inside a simulator carry gradients.

:func:`differentiable` is a block in which torch's own random functions and every ``Law.sample()``
draw by :func:`gengs.rsample`, or by the score function.
"""

__all__ = [
    "Check",
    "CutGradientWarning",
    "FittedScore",
    "Program",
    "ProgramWarning",
    "differentiable",
]

# What is where, from the outside in.
#   The user's face      program (costs, loss, check), check, auto, program_warnings
#   An open block        block, block_stack, sample_site, rules: path_rule, score_rule
#   How draws come in    torch_mode, mode_stack, torch_draws, sample_patch
#   rand() < p           noise, uniform_draws, thresholds
#   Integers and masks   surrogates, lookups, class_losses, drawn_log_prob, picks
#   The score            credit, replicate_dims; fitted_score, increments, features, regression
#   What goes missing    cut_operations, cut_report, lost_parameters, unseen_draws, forgotten_score
#   Or comes twice       gradients_by_hand
#   About distributions  known_laws, law_checks;  about tensors  in_place

from .check import Check
from .fitted_score import FittedScore
from .program import Program, differentiable
from .sample_site import CutGradientWarning, ProgramWarning
from .sample_site import Site as Site  # the type of what Program.sites holds
