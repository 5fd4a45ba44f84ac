"""``python -m mvserver`` is the program ``mvserver``."""

from __future__ import annotations

import sys

from mvserver.cli import main

sys.exit(main())
