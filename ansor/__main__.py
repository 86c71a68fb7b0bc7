"""`python -m ansor`."""

import sys

from ansor.cli import main

sys.exit(main())
