# Debian's own checks of the package. packaging/deb/lintian-overrides lists the overrides with their
# reasons.
. "$(dirname "$0")/lib.sh"
command -v lintian >/dev/null || skip "no lintian: scripts/need.sh dist_test installs it"
lintian --version
code=0
lintian --allow-root --show-overrides --display-info "$dist/$deb" >"$work/tags" || code=$?
cat "$work/tags"
# 2: errors, maybe overridden
[ "$code" = 0 ] || [ "$code" = 2 ] || fail "lintian itself failed"
! grep '^[EW]:' "$work/tags" || fail "see above"
