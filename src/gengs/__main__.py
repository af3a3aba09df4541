"""``python -m gengs`` is the same as ``gengs``."""

import sys

from .cli import main

sys.exit(main())
