"""Figure 3 to play with: one self-contained HTML page; a click in the legend hides an estimator."""

from __future__ import annotations

__all__ = ["interactive_descents"]

from collections.abc import Sequence
from typing import Any

import numpy as np

from .synthetic_curves import PANELS, Curve
from .synthetic_style import GROUPS, styles

_DASH = {"solid": "solid", "dashed": "dash", "dotted": "dot", "dashdot": "dashdot"}


def interactive_descents(curves: Sequence[Curve], title: str) -> str:
    """The page; it needs no network."""
    from plotly.graph_objects import Figure, Scatter
    from plotly.subplots import make_subplots

    figure: Figure = make_subplots(
        2, 2, shared_xaxes=True, subplot_titles=list(PANELS.values()), vertical_spacing=0.08
    )
    looks = styles((curve.label, curve.group) for curve in curves)
    titled: set[str] = set()
    for group in GROUPS:
        for curve in (one for one in curves if one.group == group):
            look = looks[curve.label]
            common: dict[str, Any] = {
                "legendgroup": curve.label,
                "name": curve.label,
                "line": {"color": look.colour, "dash": _DASH[look.dash], "width": look.width},
            }
            for number, panel in enumerate(PANELS):
                if panel not in curve.panels:
                    continue
                band = curve.panels[panel]
                sparse = panel == "bias"  # shown only where there is one
                place = {"row": number // 2 + 1, "col": number % 2 + 1}
                heading = {"text": f"<b>{GROUPS[group]}</b>"} if group not in titled else None
                figure.add_trace(
                    Scatter(
                        x=band.step,
                        y=_rounded(
                            np.where(band.clear, band.mean, np.nan) if sparse else band.mean
                        ),
                        showlegend=panel == "excess",
                        legendgrouptitle=heading if panel == "excess" else None,
                        hovertemplate=f"{curve.label}: %{{y:.4g}} at step %{{x}}<extra></extra>",
                        **common,
                    ),
                    **place,
                )
                titled.add(group)
                if sparse:
                    continue
                figure.add_trace(
                    Scatter(
                        x=np.concatenate([band.step, band.step[::-1]]),
                        y=_rounded(np.concatenate([band.high, band.low[::-1]])),
                        fill="toself",
                        fillcolor=look.colour,
                        opacity=0.12,
                        hoverinfo="skip",
                        showlegend=False,
                        **{**common, "line": {"width": 0}},
                    ),
                    **place,
                )
    figure.update_yaxes(type="log", exponentformat="power")
    figure.update_xaxes(title_text="step", row=2)
    figure.update_layout(
        title=title,
        template="plotly_white",
        height=820,
        legend={"groupclick": "togglegroup", "tracegroupgap": 2},
    )
    # Plotly would offer to send the figure to its makers.
    quiet = {"displaylogo": False, "showSendToCloud": False, "plotlyServerURL": ""}
    page: str = figure.to_html(include_plotlyjs=True, full_html=True, config=quiet)
    return page


def _rounded(values: Any) -> list[float]:
    """Five digits: the page stays small."""
    return [float(f"{value:.5g}") for value in values]
