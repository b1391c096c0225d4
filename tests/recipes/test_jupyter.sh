# A kernel of Jupyter: it computes, is interrupted, and continues.
. "$(dirname "$0")/lib.sh"
use_python
mkdir -p data/kernels/lissom
recipe jupyter >data/kernels/lissom/kernel.json
export JUPYTER_DATA_DIR=$work/data JUPYTER_RUNTIME_DIR=$work/run IPYTHONDIR=$work/ipython
cat >client.py <<'PYTHON'
import time

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="lissom")


def run(code):
    """The output of a cell, and its reply."""
    said = []
    reply = client.execute_interactive(
        code,
        timeout=120,
        output_hook=lambda m: said.append(m["content"].get("text", "")),
    )
    return "".join(said), reply["content"]


try:
    said, reply = run("from managed import check, train; check([train(16)], 16); print('trained')")
    assert reply["status"] == "ok" and said == "trained\n", (said, reply)
    message = client.execute("import time; print('begins', flush=True); time.sleep(100)")
    while client.get_iopub_msg(timeout=60)["content"].get("text") != "begins\n":
        pass
    time.sleep(0.5)
    manager.interrupt_kernel()
    reply = client.get_shell_msg(timeout=60)["content"]
    assert reply["status"] == "error" and reply["ename"] == "KeyboardInterrupt", reply
    assert run("print(1 + 1)")[0] == "2\n"
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
print("ok")
PYTHON
timeout 300 python3 client.py >out 2>messages || fail "exit code $?: $(cat out messages)"
has out ok
