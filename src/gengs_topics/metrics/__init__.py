"""How good topics are: do their words occur together, and do the topics differ?"""

from .co_occurrence import CoOccurrence
from .coherence import c_v, npmi, npmi_by_chance, npmi_of_pairs
from .diversity import inverted_rbo, topic_diversity

__all__ = [
    "CoOccurrence",
    "c_v",
    "inverted_rbo",
    "npmi",
    "npmi_by_chance",
    "npmi_of_pairs",
    "topic_diversity",
]
