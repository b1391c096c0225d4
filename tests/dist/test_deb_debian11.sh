# The package on Debian 11 (glibc 2.31): installed, used, removed.
. "$(dirname "$0")/lib.sh"
debian bullseye python3 python3-venv xz-utils
. "$here/deb.sh"
