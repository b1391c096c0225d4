# The batch script of docs/guide/recipes-services.md.
. "$(dirname "$0")/lib.sh"
. "$root/tests/recipes/recipe.sh"

cc -O2 -pthread "$root/tests/recipes/app.c" -o solver
recipe slurm >job.sh
PATH=$prefix/bin:$PATH LISSOM_VERBOSE=1 sbatch --wait --output=out job.sh || fail "$(cat out)"
# One step by `lissom run`, and one by the plugin.
[ "$(grep -c '^ok: 16 threads$' out)" = 2 ] || fail "the results: $(cat out)"
[ "$(grep -c '^lissom: active, ' out)" = 2 ] || fail "not under lissom: $(cat out)"
