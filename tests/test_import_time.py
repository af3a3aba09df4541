"""``import gengs`` adds less than a tenth of a second to ``import torch``."""

import subprocess
import sys

LIMIT = 0.1  # seconds
# The processor's time, not the clock's: other work on the machine does not count.
IMPORT = """
import time, torch
before = time.process_time()
import gengs
print(time.process_time() - before)
"""


def seconds_added():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def test_import_is_quick():
    """The best of several tries: a shared cache makes a try slow, never fast."""
    tries = []
    while len(tries) < 6 and min(tries, default=1.0) > LIMIT:
        tries.append(seconds_added())
    assert min(tries) <= LIMIT, f"import gengs took {min(tries):.2f} s after torch, at best"
