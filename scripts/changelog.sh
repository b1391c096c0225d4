#!/usr/bin/env bash
# Print the section of CHANGELOG.md for a release. Fail unless Cargo.toml has the same version.
#     scripts/changelog.sh vVERSION
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1#v}
ours=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
[ "$version" = "$ours" ] || {
    echo "the tag is of version $version, Cargo.toml of $ours: correct one of them" >&2
    exit 1
}
section=$(awk -v heading="## [$version]" '
    /^## / { inside = index($0, heading) == 1; next }
    inside' CHANGELOG.md)
grep -q '^- ' <<<"$section" || {
    echo "CHANGELOG.md has no changes of $version: rename Unreleased to [$version] - DATE" >&2
    exit 1
}
sed '/./,$!d' <<<"$section"
