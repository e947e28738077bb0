#!/usr/bin/env bash
# Make the project's own virtual environment: `bootstrap.sh FOLDER core|dev`. Needs only Python >= 3.10 with venv.
set -euo pipefail
venv=$1 kind=$2
cd "$(dirname "$0")/.."

supported() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

python=${PYTHON:-}
if [ -z "$python" ]; then
    for candidate in python3 python3.13 python3.12 python3.11 python3.10 python; do
        if supported "$candidate"; then python=$candidate; break; fi
    done
fi
if [ -z "$python" ] || ! supported "$python"; then
    cat >&2 <<END
error: no Python >= 3.10 was found
  found   ${python:-none} $(${python:-python3} --version 2>&1 || true)
  needs   Python 3.10 or newer
  mend    install one (Debian, Ubuntu: apt-get install python3 python3-venv), or: make up PYTHON=/path/to/python3
END
    exit 4
fi
if [ -x "$venv/bin/python" ] && ! supported "$venv/bin/python"; then rm -rf "$venv"; fi
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" >"/tmp/torchdeck-venv.$$" 2>&1; then
        rm -rf "$venv"
        tail -n 3 "/tmp/torchdeck-venv.$$" >&2 || true
        rm -f "/tmp/torchdeck-venv.$$"
        cat >&2 <<END
error: this Python cannot make virtual environments
  found   $("$python" --version 2>&1) at $(command -v "$python"), without the module venv or ensurepip, or an unwritable folder
  needs   both, and a writable $(pwd)
  mend    Debian, Ubuntu: apt-get install python3-venv; or: make up PYTHON=/path/to/another/python3
END
        exit 4
    fi
    rm -f "/tmp/torchdeck-venv.$$"
fi
echo "setting up $venv ($kind) with $("$venv/bin/python" --version)" >&2
# A constraint that the machine's pip configuration holds concerns other projects: our versions are locked by hash.
export PIP_CONSTRAINT=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1
if ! "$venv/bin/python" -m pip install -qq --require-hashes -r "requirements/$kind.txt"; then
    cat >&2 <<END
error: torchdeck's own packages could not be installed
  needs   the Python package index, directly, by proxy (HTTPS_PROXY) or by mirror (PIP_INDEX_URL)
  mend    see pip's message above, then run the same command again
END
    exit 4
fi
"$venv/bin/python" -m pip install -qq --no-deps --no-build-isolation -e .
touch "$venv/.core"
[ "$kind" = core ] || touch "$venv/.dev"
