# The steps of a GitHub Actions job, run as the runner does: each by `bash -e`, in one folder. pip
# gets the wheel from a folder instead of the registry.
. "$(dirname "$0")/lib.sh"
use_python
command_needed ctest cmake
recipe ci >steps.yml
python3 - <<'PYTHON'
import yaml

for number, step in enumerate(yaml.safe_load(open("steps.yml"))["steps"]):
    open(f"step{number}.sh", "w").write(step["run"])
PYTHON
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(tests C)
enable_testing()
foreach(number RANGE 1 4)
    add_test(NAME threads${number} COMMAND app --threads 16)
endforeach()
CMAKE
cmake . >cmake.out || fail "$(cat cmake.out)"
app bin/app
mkdir wheels
version=$("$lissom" --version | sed 's/^lissom //')
(cd "$root" && SOURCE_DATE_EPOCH=1000000000 python3 packaging/wheel/build.py "$lissom" \
    "$version" LICENSE "$work/wheels")
rm bin/lissom
python3 -m venv runner
PATH=$work/runner/bin:$PATH
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/wheels LISSOM_VERBOSE=1
for step in step*.sh; do
    echo "+ $(cat "$step")"
    bash -e "$step" >>out 2>>messages || fail "exit code $?: $(cat out messages)"
done
cat out
[ "$(command -v lissom)" = "$work/runner/bin/lissom" ] || fail "not the wheel's"
has out "100% tests passed, 0 tests failed out of 4"
has messages "lissom: preloads "
count Testing/Temporary/LastTest.log "lissom: active," 4
