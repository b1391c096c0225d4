# Programs that start the real one: a shell script, uv, and a static program in place of juliaup's
# launcher. Each must pass lissom on.
. "$(dirname "$0")/lib.sh"
use_python
app bin/app
printf '#!/bin/sh\nexec app --threads 16\n' >app.sh
chmod 755 app.sh
cat >launcher.c <<'C'
#include <unistd.h>
int main(int argc, char **argv) {
    return argc < 4 || execlp("app", "app", argv[1], argv[2], (char *)0);
}
C
cc -O2 -static launcher.c -o bin/julia
cat >train.py <<'PYTHON'
from managed import check, train

check([train(16)], 16)
print("ok: trained")
PYTHON
# uv uses the environment of the tests, and fetches nothing.
export VIRTUAL_ENV=$root/target/venv-recipes UV_NO_PROJECT=1 UV_OFFLINE=1
export LISSOM_VERBOSE=1
run_recipe launchers
count out "ok: 16 threads" 2
count out "ok: trained" 1
has messages "bin/julia runs natively: "
[ "$(grep -c '^lissom: active,' messages)" -ge 3 ] || fail "not all are managed: $(cat messages)"
