"""Where we stand against what a user would otherwise pick: ratios, measured within one run."""
