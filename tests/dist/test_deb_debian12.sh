# The package on Debian 12, with systemd, man and three shells: installed, used, removed.
. "$(dirname "$0")/lib.sh"
debian bookworm python3 xz-utils systemd man-db bash-completion zsh fish
. "$here/deb.sh"
