// SPDX-License-Identifier: MIT

package tests

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// optionValues holds every value of every option that an annotation may have, or the bounds.
var optionValues = map[string][]string{
	"switch":         {"auto", "user", "kernel", "off"},
	"spin":           {"auto", "observe", "off"},
	"spin-threshold": {"auto", "0", "1000", "1000000"},
	"cpus":           {"1", "4", "1024"},
	"idle":           {"sleep", "poll", "haltpoll"},
	"share":          {"auto", "off"},
	"malleable":      {"0", "1"},
	"omp-team":       {"program", "slots"},
	"max-threads":    {"1", "8", "1024"},
	"verbose":        {"0", "1"},
}

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
	var all []string
	for _, name := range slices.Sorted(maps.Keys(optionValues)) {
		values := optionValues[name]
		for _, value := range values {
			compare(nil, name+"="+value)
		}
		all = append(all, name+"="+values[1])
	}
	compare(nil, all...)
	for _, environment := range environments {
		compare(environment)
		compare(environment, "max-threads=8")
		compare(environment, all...)
	}
}

// environmentOfRun returns the environment of a program started by the real command.
func environmentOfRun(t *testing.T, environment, options []string) map[string]string {
	t.Helper()
	arguments := []string{"run"}
	for _, option := range options {
		switch option {
		case "verbose=1":
			arguments = append(arguments, "--verbose")
		case "verbose=0": // the command has no such option, but reads the variable
			environment = slices.DeleteFunc(slices.Clone(environment), func(v string) bool { return strings.HasPrefix(v, "LISSOM_VERBOSE=") })
			environment = append(environment, "LISSOM_VERBOSE=0")
		default:
			arguments = append(arguments, "--"+option)
		}
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

// TestAllOptionsAreCompared checks that optionValues has every option of the agent.
func TestAllOptionsAreCompared(t *testing.T) {
	source, err := os.ReadFile("../agent/optin.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\t"([a-z-]+)": +\{"LISSOM_`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	if compared := slices.Sorted(maps.Keys(optionValues)); !slices.Equal(names, compared) {
		t.Errorf("the agent has the options %v, compared are %v", names, compared)
	}
}
