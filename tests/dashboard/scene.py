"""A real Prometheus that asks a real `lissom manager`, and programs under lissom for it to see. All of it ends with the process that began it."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
LISSOM = os.environ.get("LISSOM_TEST_BIN", str(TARGET / "release/lissom"))

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def dies_with_parent():
    """Also if that one is killed, and cannot clean up."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def until(what, seconds, ready):
    """Post: what `ready` has answered, which is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = ready()
        if answer:
            return answer
        time.sleep(0.1)
    raise TimeoutError(f"{what}: not within {seconds} s")


class Prometheus:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def ready(self):
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer,
        ):
            return answer.status == 200
        return False

    def ask(self, path, **parameters):
        """Post: the answer's data; ValueError is Prometheus's own word about what was wrong."""
        pairs = [
            (k, v)
            for k, values in parameters.items()
            for v in (values if isinstance(values, list) else [values])
        ]
        try:
            with urllib.request.urlopen(
                f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(pairs)}", timeout=30
            ) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as e:
            raise ValueError(json.load(e).get("error", str(e))) from e

    def over(self, query, start, end, step):
        return self.ask("query_range", query=query, start=start, end=end, step=step)["result"]


class Quota:
    """A cgroup whose processes get so many percent of one CPU, of either version. Needs root."""

    def __init__(self, name, percent):
        for top in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"):
            self.folder = Path(top) / name
            with contextlib.suppress(OSError):
                if top == "/sys/fs/cgroup":
                    (Path(top) / "cgroup.subtree_control").write_text("+cpu")
                self.folder.mkdir()
                try:
                    if (self.folder / "cpu.max").exists():
                        (self.folder / "cpu.max").write_text(f"{percent * 1000} 100000")
                    else:
                        (self.folder / "cpu.cfs_quota_us").write_text(str(percent * 1000))
                    return
                except OSError:
                    self.folder.rmdir()
        raise OSError("no cgroup with a CPU quota can be made")

    def enter(self):
        (self.folder / "cgroup.procs").write_text("0")

    def remove(self):
        until(
            "the quota's cgroup is empty",
            10,
            lambda: not (self.folder / "cgroup.procs").read_text(),
        )
        self.folder.rmdir()


class Scene:
    """Pre: used as a context. `folder` is a new one, for what it writes."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.running, self.quotas = {}, []
        self.environment = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("LISSOM", "OMP_", "GOMP_", "LD_PRELOAD"))
        }
        # Read by both the manager and the programs.
        self.environment["LISSOM_MANAGER"] = str(self.folder / "socket")

    def __enter__(self):
        # Clean up after a signal, too.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: exit(128 + number))
        return self

    def __exit__(self, *_):
        # Ignore further signals during the cleanup.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()
        for quota in self.quotas:
            quota.remove()

    def start(self, name, command, quota=None, **streams):
        def before():
            dies_with_parent()
            if quota:
                quota.enter()

        self.running[name] = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            preexec_fn=before,
            stdin=subprocess.DEVNULL,
            **streams,
        )
        return self.running[name]

    def said(self, name):
        return self.folder / f"{name}.out"

    def start_writing(self, name, command, **options):
        with open(self.said(name), "w", encoding="utf-8") as out:
            return self.start(name, command, stdout=out, stderr=subprocess.STDOUT, **options)

    def end(self, name):
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def check_running(self):
        for name, process in self.running.items():
            if process.poll() is not None:
                raise ChildProcessError(
                    f"{name} has ended ({process.returncode}): {self.said(name).read_text(errors='replace')[-2000:]}"
                )

    def pids(self):
        return [str(process.pid) for process in self.running.values()]

    def manager(self):
        """Post: where its metrics are."""
        self.start_writing("manager", [LISSOM, "manager", "--metrics=0"])

        def address():
            self.check_running()
            found = re.search(r"metrics at http://(\S+)/metrics", self.said("manager").read_text())
            return found and found[1]

        return until("the manager's metrics", 10, address)

    def prometheus(self, targets):
        """It asks each of `targets` (ADDRESS:PORT) once a second."""
        (self.folder / "prometheus.yml").write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                    "scrape_configs": [
                        {"job_name": "lissom", "static_configs": [{"targets": targets}]}
                    ],
                }
            )
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.start_writing(
            "prometheus",
            [
                "prometheus",
                f"--config.file={self.folder}/prometheus.yml",
                f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
        )
        prometheus = Prometheus(port)

        def ready():
            self.check_running()
            return prometheus.ready()

        until("Prometheus", 30, ready)
        return prometheus

    def built(self, source, *flags, name=None):
        """Post: the program that `source` is of, under another name if that is wanted."""
        program = self.folder / (name or source.stem)
        compiler = os.environ.get("CC", "gcc")
        subprocess.run(
            [
                compiler,
                "-std=gnu11",
                "-O2",
                "-g",
                "-pthread",
                str(source),
                "-o",
                str(program),
                *flags,
            ],
            check=True,
        )
        return str(program)

    def copy(self, program, name):
        return shutil.copy(program, self.folder / name)

    def lissom(self, name, *command, options=(), percent=None):
        """A program under lissom, in a group that has so many percent of one CPU. Post: whether it has the quota that it should have."""
        quota = None
        if percent:
            with contextlib.suppress(OSError):
                quota = Quota(f"lissom-dashboard-{os.getpid()}-{len(self.quotas)}", percent)
                self.quotas.append(quota)
        self.start_writing(name, [LISSOM, "run", *options, "--", *command], quota=quota)
        return percent is None or quota is not None
