# pytest, with workers of pytest-xdist.
. "$(dirname "$0")/lib.sh"
use_python
mkdir tests
for number in 1 2 3 4; do
    cat >"tests/test_train$number.py" <<'PYTHON'
from managed import check, train


def test_train(worker_id):
    assert worker_id.startswith("gw")
    check([train(16)], 16)
PYTHON
done
run_recipe pytest
has out "4 passed"
