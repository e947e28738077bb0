#!/usr/bin/env bash
# Run the tests against the built wheel, as a user would have it, never against the source tree.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist build/site
.venv/bin/python -m hatchling build -t wheel -d dist >/dev/null
.venv/bin/uv pip install --quiet --no-deps --no-config --target build/site dist/*.whl
# PYTHONPATH comes before the editable install of the checkout.
PYTHONPATH=$PWD/build/site exec .venv/bin/python -m pytest "$@"
