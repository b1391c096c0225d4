# CPUs that go and come.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync tasks
inside -- hotplug.sh
