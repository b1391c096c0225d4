# stress-ng for a minute.
. "$(dirname "$0")/lib.sh"
build_scheduler
command -v stress-ng >/dev/null || skip "no stress-ng: scripts/need.sh vm installs it"
inside --program "$(command -v stress-ng)" -- stress.sh 60
