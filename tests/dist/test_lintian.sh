# Debian's own checks of the package. What is overridden, and why, is in packaging/deb/lintian-overrides.
. "$(dirname "$0")/lib.sh"
command -v lintian >/dev/null || skip "no lintian: scripts/need.sh dist_test installs it"
lintian --version
lintian --allow-root --show-overrides --display-info "$dist/$deb" | tee "$work/tags"
! grep -q '^[EW]:' "$work/tags"
