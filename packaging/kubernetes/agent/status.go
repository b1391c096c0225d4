// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
)

type containerName struct{ namespace, pod, name string }

func (n containerName) LogValue() slog.Value {
	return slog.GroupValue(slog.String("namespace", n.namespace), slog.String("pod", n.pod), slog.String("name", n.name))
}

// result is the outcome of a container's creation.
type result int

const (
	resultAdjusted result = iota
	resultNotAsked
	resultFailed // opted in, but runs natively
	results
)

var resultNames = [results]string{"adjusted", "not_asked", "failed"}

// status is the state that probes and metrics report.
type status struct {
	mutex      sync.Mutex
	connected  bool
	counts     [results]uint64
	resizes    uint64
	containers map[string]managedContainer // by id
}

type managedContainer struct {
	name containerName
	cpus float64 // 0: no limit
}

func newStatus() *status { return &status{containers: map[string]managedContainer{}} }

func (s *status) locked(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
}

func (s *status) connect(connected bool) { s.locked(func() { s.connected = connected }) }

func (s *status) count(r result) { s.locked(func() { s.counts[r]++ }) }

func (s *status) forget(id string) { s.locked(func() { delete(s.containers, id) }) }

func (s *status) forgetAll() { s.locked(func() { clear(s.containers) }) }

func (s *status) note(name containerName, id string, cpus float64) {
	s.locked(func() { s.containers[id] = managedContainer{name, cpus} })
}

func (s *status) resize(name containerName, id string, cpus float64) {
	s.note(name, id, cpus)
	s.locked(func() { s.resizes++ })
}

func (s *status) managed() (n int) {
	s.locked(func() { n = len(s.containers) })
	return n
}

func (s *status) isConnected() (connected bool) {
	s.locked(func() { connected = s.connected })
	return connected
}

// handler serves /healthz, /readyz and, in Prometheus' text format, /metrics.
func (s *status) handler(ready func() error) http.Handler {
	mux := http.NewServeMux()
	// Any answer is enough: without the container runtime the agent waits for it, and a restart
	// would not help.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		} else if !s.isConnected() {
			http.Error(w, "not connected to the container runtime", http.StatusServiceUnavailable)
		} else {
			fmt.Fprintln(w, "ok")
		}
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, s.metrics())
	})
	return mux
}

func (s *status) metrics() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var b strings.Builder
	describe := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	describe("lissom_agent_connected", "gauge", "Whether the container runtime is connected.")
	connected := 0
	if s.connected {
		connected = 1
	}
	fmt.Fprintf(&b, "lissom_agent_connected %d\n", connected)
	describe("lissom_agent_containers_total", "counter", "Containers whose creation was seen; failed: opted in, but runs natively.")
	for r, n := range s.counts {
		fmt.Fprintf(&b, "lissom_agent_containers_total{result=%q} %d\n", resultNames[r], n)
	}
	describe("lissom_agent_resizes_total", "counter", "Changes of the resources of containers under lissom.")
	fmt.Fprintf(&b, "lissom_agent_resizes_total %d\n", s.resizes)
	describe("lissom_container_cpus", "gauge", "CPU limit of a container under lissom; 0: none.")
	lines := make([]string, 0, len(s.containers))
	for _, c := range s.containers {
		lines = append(lines, fmt.Sprintf("lissom_container_cpus{namespace=%q,pod=%q,container=%q} %g\n",
			c.name.namespace, c.name.pod, c.name.name, c.cpus))
	}
	slices.Sort(lines)
	for _, line := range lines {
		b.WriteString(line)
	}
	return b.String()
}
