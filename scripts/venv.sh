#!/usr/bin/env bash
# Make a folder with Python libraries, unless it exists.
#     scripts/venv.sh [REQUIREMENTS FOLDER]
# Default: the libraries with which workloads/ml.py trains, in target/venv.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=${1:-workloads/requirements.txt}
venv=${2:-target/venv}
if cmp -s "$wanted" "$venv/requirements.txt" 2>/dev/null; then
    exit 0
fi
echo "installing with pip into $venv: $(tr '\n' ' ' <"$wanted")"
mkdir -p target
python3 -m venv "$venv"
"$venv/bin/python3" -m pip install --quiet --disable-pip-version-check -r "$wanted"
# Last, so that a broken installation is repeated.
cp "$wanted" "$venv/requirements.txt"
