#!/usr/bin/env bash
# Renew the locks of torchdeck's own environment: every version with its hashes, no index address.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    .venv/bin/uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.10 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header --no-annotate --output-file "$@"
}
export UV_NO_CONFIG=1
compile requirements/core.txt requirements/build.in
compile requirements/dev.txt requirements/build.in --extra dev
