"""How many documents have a topic, as it is listed and written everywhere."""

__all__ = ["most_documents_first", "percent"]

from collections.abc import Sequence


def most_documents_first(documents: Sequence[int]) -> list[int]:
    """The topics by how many documents have them; of equals, the first ones.

    Example:
        >>> most_documents_first([3, 5, 3])
        [1, 0, 2]
    """
    return sorted(range(len(documents)), key=lambda k: -documents[k])


def percent(share: float) -> str:
    """A share of documents.

    Example:
        >>> percent(0.1625), percent(0.004)
        ('16 %', '0.4 %')
    """
    return f"{100 * share:.{1 if 0 < share < 0.01 else 0}f} %"
