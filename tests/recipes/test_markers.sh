# Each marked recipe of docs/guide is run by a test, here or in another folder.
. "$(dirname "$0")/lib.sh"
sed -n 's/^<!-- recipe: \(.*\) -->$/\1/p' "$root"/docs/guide/*.md >names
[ -s names ] || fail "no page has a recipe"
while read -r name; do
    recipe "$name" >block
    [ -s block ] || fail "$name is empty"
    grep -rqE "recipe(\(t, \"| )$name\b" "$root"/tests/{recipes,slurm,dist}/test_*.sh \
        "$root"/packaging/kubernetes/tests/*_test.go || fail "no test runs the recipe $name"
done <names
