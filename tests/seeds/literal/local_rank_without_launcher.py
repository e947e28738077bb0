"""The local rank is read where no launcher has set it."""

import os

int(os.environ["LOCAL_RANK"])
