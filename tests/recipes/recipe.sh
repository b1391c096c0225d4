# Sourced by tests of the recipes, with $root set to the top folder.

# recipe NAME: print the code block that follows the line `<!-- recipe: NAME -->` of a page in
# docs/guide. Fails unless there is exactly one.
recipe() {
    local text
    text=$(awk -v marker="<!-- recipe: $1 -->" '
        $0 == marker { count++; armed = 1; next }
        inside && /^```/ { inside = 0; next }
        inside
        armed { bad = !/^```/; inside = !bad; armed = 0 }
        END { exit bad || inside || count != 1 }' "$root"/docs/guide/*.md) ||
        fail "docs/guide: not one block '$1'"
    printf '%s\n' "$text"
}
