# Packages of Debian suites that this machine's apt may lack. Uses a configuration of its own, so
# that a test does not change the machine's package sources. Sourced.

# configure_apt FOLDER [SUITE...]: set own_apt to the options for apt-get and apt-cache. Lists and
# downloads are kept in FOLDER.
configure_apt() {
    local folder=$1 mirror suite
    shift
    [ $# -gt 0 ] || set -- bookworm bookworm-backports trixie-backports
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME)' 'Created-By: Packages' |
        awk '$2 == "Debian" && $3 !~ /-/ { print $1; exit }')
    if [ -z "$mirror" ]; then
        echo "${0##*/}: apt knows no Debian mirror: add one to its sources, and run apt-get update" >&2
        return 1
    fi
    mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
    for suite in "$@"; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
    done >"$folder/sources.list"
    own_apt=(-o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder/cache")
    [ -n "$(find "$folder/lists" -maxdepth 1 -name '*Packages*' -mtime -1)" ] && return 0
    apt-get "${own_apt[@]}" update -qq
}
