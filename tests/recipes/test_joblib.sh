# joblib's worker processes.
. "$(dirname "$0")/lib.sh"
use_python
cat >search.py <<'PYTHON'
import os

import joblib
from managed import check, train


def work(threads):
    return os.getpid(), train(threads)


results = joblib.Parallel(n_jobs=4)(joblib.delayed(work)(8) for _ in range(8))
check([result for _, result in results], 8)
workers = {pid for pid, _ in results}
assert os.getpid() not in workers
print("ok:", len(results), "trained")
PYTHON
run_recipe joblib
has out "ok: 8 trained"
