# Workers of Ray under lissom, and its own processes natively.
. "$(dirname "$0")/lib.sh"
use_python
{
    echo 'import ray'
    recipe ray
    cat <<'PYTHON'
from managed import check, managed, train

work = ray.remote(train)
results = ray.get([work.remote(8) for _ in range(4)], timeout=300)
check(results, 8)
assert managed() is None, "the driver is under lissom"
print("ok: 4 trained")
PYTHON
} >driver.py
cat driver.py
export RAY_USAGE_STATS_ENABLED=0
timeout 500 python3 driver.py >out 2>messages || fail "exit code $?: $(cat out messages)"
has out "ok: 4 trained"
