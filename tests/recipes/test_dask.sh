# Workers of Dask under lissom, and its scheduler natively.
. "$(dirname "$0")/lib.sh"
use_python
recipe dask >script
cat script
setsid bash -e script >out 2>messages &
dask=$!
trap 'kill -- "-$dask" 2>/dev/null; wait "$dask" || true; rm -rf "$work"' EXIT
cat >client.py <<'PYTHON'
from dask.distributed import Client
from managed import check, managed, train

with Client(scheduler_file="cluster.json") as client:
    client.wait_for_workers(2, timeout=120)
    assert client.run_on_scheduler(managed) is None, "the scheduler is under lissom"
    workers = client.run(managed)
    assert len(workers) == 2 and all(workers.values()), workers
    check(client.gather(client.map(train, [8, 8, 8, 8], pure=False)), 8)
    nthreads = set(client.nthreads().values())
    assert nthreads == {8}, nthreads
print("ok: 4 trained")
PYTHON
there() { [ -s cluster.json ]; }
until_true 60 there || fail "no scheduler: $(cat out messages)"
timeout 300 python3 client.py >client.out 2>client.messages ||
    fail "$(cat client.out client.messages messages)"
has client.out "ok: 4 trained"
