"""Test the package lissom of the wheel; test_wheel.sh runs this in the wheel's environment."""

import json
import os
import subprocess
import sys
import unittest

import lissom

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "package.py")


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def said(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class Package(unittest.TestCase):
    def test_native(self):
        self.assertFalse(lissom.active())
        self.assertIsNone(lissom.stats())
        self.assertEqual(lissom.program(), os.path.join(sys.prefix, "bin/lissom"))

    def test_one_thread(self):
        found = said("-m", "lissom", SCRIPT)
        self.assertTrue(found["active"])
        self.assertGreaterEqual(found["after"]["threads"], found["before"]["threads"])

    def test_threads(self):
        for switch in ["auto", "kernel"]:
            found = said("-m", "lissom", f"--switch={switch}", SCRIPT, "8", "--cpus=2")
            self.assertTrue(found["active"])
            self.assertEqual(found["switch"], switch)
            self.assertEqual(found["arguments"], ["8", "--cpus=2"])
            self.assertGreaterEqual(found["after"]["threads"], 9)
            self.assertGreater(found["after"]["blocks"], 0)

    def test_switched_off(self):
        found = said("-m", "lissom", "--switch=off", SCRIPT, "8")
        self.assertFalse(found["active"])
        self.assertIsNone(found["after"])

    def test_options_of_python(self):
        for options in (["-O", "-m", "lissom"], ["-Om", "lissom"], ["-X", "dev", "-Omlissom"]):
            self.assertEqual(said(*options, SCRIPT)["optimized"], 1, options)
        self.assertEqual(said("-m", "lissom", SCRIPT)["optimized"], 0)

    def test_given_up(self):
        # The runtime is loaded, but off.
        environment = run("-m", "lissom", "-c", "import os; print(os.environ['LD_PRELOAD'])")
        preload = environment.stdout.strip()
        self.assertIn("liblissom", preload)
        done = run(SCRIPT, "8", env={**os.environ, "LD_PRELOAD": preload, "LISSOM": "off"})
        found = json.loads(done.stdout)
        self.assertEqual((found["active"], found["after"]), (False, None))

    def test_module_and_code(self):
        code = "import lissom; print(int(lissom.active()))"
        self.assertEqual(said("-m", "lissom", "-c", code), 1)
        self.assertEqual(said("-m", "lissom", "--", "-c", code), 1)
        done = run("-m", "lissom", "-m", "package", "2", cwd=HERE)
        self.assertTrue(json.loads(done.stdout)["active"], done.stderr)

    def test_exit_code_and_process(self):
        code = "import os, sys; print(os.getpid()); sys.exit(7)"
        process = subprocess.Popen(
            [sys.executable, "-m", "lissom", "-c", code], stdout=subprocess.PIPE, text=True
        )
        output, _ = process.communicate()
        self.assertEqual((process.returncode, int(output)), (7, process.pid))

    def test_errors(self):
        for arguments, message in [
            ([], "a script is missing: pass its path"),
            (["--cpus", "4", SCRIPT], "there is no script 4: pass its path, and write values"),
            (["nowhere.py"], "there is no script nowhere.py"),
            (["--no-such-option", SCRIPT], "--no-such-option"),
        ]:
            done = run("-m", "lissom", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)

    def test_program_missing(self):
        os.rename(lissom.program(), lissom.program() + ".away")
        path = os.path.join(sys.prefix, "bin/lissom")
        try:
            with self.assertRaisesRegex(FileNotFoundError, "pip install --force-reinstall lissom"):
                lissom.stats()
            done = run("-m", "lissom", SCRIPT)
            self.assertIn("--force-reinstall", done.stderr)
        finally:
            os.rename(path + ".away", path)


if __name__ == "__main__":
    unittest.main()
