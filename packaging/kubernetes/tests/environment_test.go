// SPDX-License-Identifier: MIT

package tests

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// allOptions is an option of each kind of value, with values other than the defaults.
var allOptions = []string{"switch=user", "spin=observe", "spin-threshold=2us", "cpus=4", "idle=poll", "share=off",
	"malleable=1", "omp-team=slots", "max-threads=8", "omp-schedule=guided", "verbose"}

// environments are settings of images and pods. Each is compared without options, and with
// max-threads=8, which reads most variables.
var environments = [][]string{
	{"PATH=/bin", "OTHER=a=b", "EMPTY="},
	{"LD_PRELOAD="},
	{"LD_PRELOAD=/lib/a.so /lib/b.so"},
	{"LD_PRELOAD=/x/liblissom-0123456789abcdef.so:/lib/a.so"},
	{"GLIBC_TUNABLES=glibc.pthread.rseq=1"},
	{"OMP_WAIT_POLICY="},
	{"OMP_WAIT_POLICY=passive"},
	{"OMP_WAIT_POLICY=ACTIVE"},
	{"OMP_WAIT_POLICY=active", "KMP_BLOCKTIME=200"},
	{"GOMP_SPINCOUNT=7"},
	{"KMP_BLOCKTIME=infinite"},
	{"OMP_NUM_THREADS="},
	{"OMP_NUM_THREADS= 3 ,2"},
	{"OMP_NUM_THREADS=+5"},
	{"OMP_NUM_THREADS=many"},
	{"OMP_NUM_THREADS=0"},
	{"OMP_NUM_THREADS=1024"},
	{"OMP_NUM_THREADS=1025"},
	{"OMP_NUM_THREADS=99999999999999999999"},
	{"LISSOM=0"},
	{"LISSOM=1"},
	{"LISSOM_SWITCH=off"},
	{"LISSOM_SWITCH=kernel", "LISSOM_SPIN=off", "LISSOM_SPIN_THRESHOLD=5", "LISSOM_IDLE=poll", "LISSOM_SHARE=off"},
	{"LISSOM_CPUS=3", "LISSOM_MALLEABLE=1", "LISSOM_OMP_TEAM=slots", "LISSOM_VERBOSE=1"},
	{"LISSOM_MAX_THREADS=4"},
	{"LISSOM_MAX_THREADS=4", "OMP_NUM_THREADS=2"},
	{"OMP_SCHEDULE=static", "LISSOM_OMP_SCHEDULE=dynamic,4"},
	{"LISSOM_OMP_SCHEDULE=dynamic,4"},
	// An image with `lissom run` as its command, or with its variables.
	{"LISSOM_OPENMP=poll", "GOMP_SPINCOUNT=0", "KMP_BLOCKTIME=0"},
	{"LISSOM_ACTIVE_THREADS=3", "LISSOM_MAX_THREADS=4", "OMP_NUM_THREADS=4"},
	{"LISSOM_ACTIVE_THREADS=3", "OMP_NUM_THREADS=4"},
	{"LISSOM_OPENMP=poll", "OMP_WAIT_POLICY=passive"},
}

// TestEnvironmentIsThatOfRun compares a container's variables with those that `lissom run` with the
// same options sets: all of them, in both directions, except for the library's folder.
func TestEnvironmentIsThatOfRun(t *testing.T) {
	n, folder := newNode(t), installed(t)
	n.agent(folder)
	compare := func(environment []string, options ...string) {
		t.Run(strings.Join(append(slices.Clone(options), environment...), " "), func(t *testing.T) {
			a := optedIn(environment...)
			a.annotations["lissom.dev/options"] = strings.Join(options, ",")
			got, want := n.create(a).environment, environmentOfRun(t, environment, options)
			for _, variables := range []map[string]string{got, want} {
				if first, others, _ := strings.Cut(variables["LD_PRELOAD"], ":"); strings.HasPrefix(path.Base(first), "liblissom-") {
					variables["LD_PRELOAD"] = strings.TrimSuffix(path.Base(first)+":"+others, ":")
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("the container has\n%s`lissom run` gives\n%s", lines(got), lines(want))
			}
		})
	}
	compare(nil)
	compare(nil, allOptions...)
	compare(nil, "switch=off")
	for _, environment := range environments {
		compare(environment)
		compare(environment, "max-threads=8")
		compare(environment, allOptions...)
	}
}

// environmentOfRun returns the environment of a program started by the real command.
func environmentOfRun(t *testing.T, environment, options []string) map[string]string {
	t.Helper()
	arguments := []string{"run"}
	for _, option := range options {
		arguments = append(arguments, "--"+option)
	}
	command := exec.Command(lissomBinary(t), append(arguments, "--", "/usr/bin/env", "--null")...)
	command.Env = append([]string{}, environment...) // nil would be that of the test
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command.Args, err, &said)
	}
	variables := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(output), "\x00"), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			variables[name] = value
		}
	}
	return variables
}

func lines(variables map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&text, "    %s=%s\n", name, variables[name])
	}
	return text.String()
}
