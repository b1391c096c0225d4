#!/usr/bin/env bash
# Makes a folder with Python libraries, unless it is there already.
#     scripts/venv.sh [REQUIREMENTS FOLDER]     by default what workloads/ml.py trains with, in target/venv
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
# Last: a broken installation is tried again.
cp "$wanted" "$venv/requirements.txt"
