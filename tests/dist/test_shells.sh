# Manual pages and completions at their places in the package, used by the real programs.
. "$(dirname "$0")/lib.sh"
debian bookworm python3 xz-utils systemd man-db bash-completion zsh fish
cp "$dist/$deb" "$machine/tmp/"
inside dpkg -i "/tmp/$deb" >/dev/null
rm "$machine/etc/dpkg/dpkg.cfg.d/excludes" 2>/dev/null || true

# check OUTPUT WORD...: fail unless the output contains every word
check() {
    local output=$1 word
    shift
    echo "$output"
    for word in "$@"; do
        grep -q -- "$word" <<<"$output" || fail "no $word"
    done
}
check "$(inside man --warnings -P cat lissom-run 2>&1)" 'LISSOM-RUN(1)\|lissom-run(1)' '--switch'
! inside man --warnings -P cat lissom-run 2>&1 >/dev/null | grep . || fail "warnings of man"

inside_shell=/bin/bash
check "$(show '. /usr/share/bash-completion/bash_completion
_completion_loader lissom
complete -p lissom
COMP_WORDS=(lissom d) COMP_CWORD=1 COMPREPLY=()
$(complete -p lissom | sed "s/.*-F \([^ ]*\).*/\1/") lissom d lissom
echo "${COMPREPLY[@]}"')" doctor
inside_shell=/bin/zsh
check "$(show 'autoload -Uz compinit && compinit -D && echo $_comps[lissom] && autoload +X _lissom && functions _lissom | head -n 3')" '^_lissom$'
# Simulate typing: zsh completes only in a terminal.
check "$(show 'zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "autoload -Uz compinit; compinit -D; PS1=; unsetopt zle_bracketed_paste"
sleep 1
zpty -w -n shell "lissom doc	"
sleep 1
zpty -r -m shell text "*lissom doctor*" && echo "completed: lissom doctor"
zpty -d shell')" 'completed: lissom doctor'
inside_shell=/usr/bin/fish
check "$(show 'complete -C "lissom d"; complete -C "lissom run --sw"')" '^doctor' '--switch'
