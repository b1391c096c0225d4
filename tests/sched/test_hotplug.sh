# CPUs that go offline and come back.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync tasks
inside -- hotplug.sh
