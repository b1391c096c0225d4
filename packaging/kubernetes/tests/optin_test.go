// SPDX-License-Identifier: MIT

package tests

import (
	"strings"
	"testing"

	"github.com/containerd/nri/pkg/api"
)

func TestWhoIsOptedIn(t *testing.T) {
	n := newNode(t)
	n.agent(installed(t), "-namespaces", "training,batch")
	for name, c := range map[string]struct {
		asked asked
		want  bool
	}{
		"nobody asks":                    {asked{}, false},
		"the pod":                        {asked{annotations: map[string]string{"lissom.dev/run": "true"}}, true},
		"the pod, not this container":    {asked{annotations: map[string]string{"lissom.dev/run": "true", "lissom.dev/run.main": "false"}}, false},
		"this container":                 {asked{annotations: map[string]string{"lissom.dev/run.main": "true"}}, true},
		"another container":              {asked{annotations: map[string]string{"lissom.dev/run.other": "true"}}, false},
		"the namespace":                  {asked{namespace: "batch"}, true},
		"the namespace, not the pod":     {asked{namespace: "batch", annotations: map[string]string{"lissom.dev/run": "false"}}, false},
		"the namespace, but this one":    {asked{namespace: "batch", annotations: map[string]string{"lissom.dev/run.main": "false"}}, false},
		"a namespace of a similar name":  {asked{namespace: "batch-2"}, false},
		"options alone":                  {asked{annotations: map[string]string{"lissom.dev/options": "cpus=2"}}, false},
		"the annotation of somebody":     {asked{annotations: map[string]string{"example.com/run": "true"}}, false},
		"the pod, switched off by value": {asked{annotations: map[string]string{"lissom.dev/run": "true"}, environment: []string{"LISSOM=0"}}, false},
		"the pod, switched off by level": {asked{annotations: map[string]string{"lissom.dev/run": "true", "lissom.dev/options": "switch=off"}}, false},
		"the pod, level off by variable": {asked{annotations: map[string]string{"lissom.dev/run": "true"}, environment: []string{"LISSOM_SWITCH=off"}}, false},
		"off by variable, on by option": {asked{annotations: map[string]string{"lissom.dev/run": "true", "lissom.dev/options": "switch=user"},
			environment: []string{"LISSOM_SWITCH=off"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			made := n.create(c.asked)
			if made.isAdjusted() != c.want {
				t.Errorf("adjusted: %v, want %v: %v", made.isAdjusted(), c.want, made.environment)
			}
			if !c.want {
				made.checkNative(t)
			}
		})
	}
}

func optedIn(environment ...string) asked {
	return asked{annotations: map[string]string{"lissom.dev/run": "true"}, environment: environment}
}

func (c created) check(t *testing.T, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := c.environment[name]; got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

// TestWhatIsAdjusted checks the complete adjustment of a container.
func TestWhatIsAdjusted(t *testing.T) {
	n, folder := newNode(t), installed(t)
	n.agent(folder)
	made := n.create(optedIn("PATH=/bin"))
	want := map[string]string{
		"PATH":                  "/bin",
		"LD_PRELOAD":            "/.lissom/$LIB/" + current(t, folder),
		"GOMP_SPINCOUNT":        "0",
		"KMP_BLOCKTIME":         "0",
		"LISSOM_OPENMP":         "poll",
		"LISSOM_SWITCH":         "auto",
		"LISSOM_SPIN":           "auto",
		"LISSOM_SPIN_THRESHOLD": "auto",
		"LISSOM_IDLE":           "haltpoll",
		"LISSOM_SHARE":          "auto",
	}
	made.check(t, want)
	for name := range made.environment {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is set, too", name)
		}
	}
	if len(made.mounts) != 1 {
		t.Fatalf("mounts: %v", made.mounts)
	}
	m := made.mounts[0]
	if m.Source != folder || m.Destination != "/.lissom" || m.Type != "bind" || strings.Join(m.Options, ",") != "bind,rprivate,ro,nosuid,nodev" {
		t.Errorf("mount: %v", m)
	}
}

func TestEnvironmentOfTheUser(t *testing.T) {
	n, folder := newNode(t), installed(t)
	n.agent(folder)
	ours := "/.lissom/$LIB/" + current(t, folder)
	for name, c := range map[string]struct {
		environment []string
		options     string
		want        map[string]string
	}{
		"his preload comes after ours": {[]string{"LD_PRELOAD=/lib/a.so /lib/b.so"}, "",
			map[string]string{"LD_PRELOAD": ours + ":/lib/a.so:/lib/b.so"}},
		"an older runtime is replaced": {[]string{"LD_PRELOAD=/x/liblissom-0123456789abcdef.so:/lib/a.so"}, "",
			map[string]string{"LD_PRELOAD": ours + ":/lib/a.so"}},
		"his tunables stay": {[]string{"GLIBC_TUNABLES=glibc.pthread.rseq=1"}, "",
			map[string]string{"GLIBC_TUNABLES": "glibc.pthread.rseq=1"}},
		"his spinning stays": {[]string{"GOMP_SPINCOUNT=100"}, "",
			map[string]string{"GOMP_SPINCOUNT": "100", "KMP_BLOCKTIME": "", "LISSOM_OPENMP": ""}},
		"his passive waits stay": {[]string{"OMP_WAIT_POLICY=passive"}, "",
			map[string]string{"GOMP_SPINCOUNT": "", "LISSOM_OPENMP": ""}},
		"active waits are polled": {[]string{"OMP_WAIT_POLICY=ACTIVE"}, "",
			map[string]string{"GOMP_SPINCOUNT": "0", "LISSOM_OPENMP": "poll"}},
		"his variables stay": {[]string{"LISSOM_IDLE=sleep", "LISSOM_CPUS=3"}, "",
			map[string]string{"LISSOM_IDLE": "sleep", "LISSOM_CPUS": "3"}},
		"options come before variables": {[]string{"LISSOM_IDLE=sleep"}, "idle=poll",
			map[string]string{"LISSOM_IDLE": "poll"}},
		"all options": {nil, "switch=user, cpus=4,spin=observe,spin-threshold=1000,idle=sleep,share=off,malleable=1,omp-team=program,verbose",
			map[string]string{"LISSOM_SWITCH": "user", "LISSOM_CPUS": "4", "LISSOM_SPIN": "observe", "LISSOM_SPIN_THRESHOLD": "1000",
				"LISSOM_IDLE": "sleep", "LISSOM_SHARE": "off", "LISSOM_MALLEABLE": "1", "LISSOM_OMP_TEAM": "program", "LISSOM_VERBOSE": "1"}},
		"larger teams": {[]string{"OMP_NUM_THREADS=4,2"}, "max-threads=16",
			map[string]string{"OMP_NUM_THREADS": "16", "LISSOM_ACTIVE_THREADS": "4", "LISSOM_MAX_THREADS": "16"}},
		"larger teams, of no size before": {nil, "max-threads=16",
			map[string]string{"OMP_NUM_THREADS": "16", "LISSOM_ACTIVE_THREADS": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			a := optedIn(c.environment...)
			a.annotations["lissom.dev/options"] = c.options
			n.create(a).check(t, c.want)
		})
	}
}

func TestOptionsOfOneContainer(t *testing.T) {
	n := newNode(t)
	n.agent(installed(t))
	a := optedIn()
	a.annotations["lissom.dev/options"] = "cpus=4,idle=poll"
	a.annotations["lissom.dev/options.small"] = "cpus=1"
	n.create(a).check(t, map[string]string{"LISSOM_CPUS": "4", "LISSOM_IDLE": "poll"})
	a.container = "small"
	n.create(a).check(t, map[string]string{"LISSOM_CPUS": "1", "LISSOM_IDLE": "haltpoll"})
}

// TestMalformedAnnotations: the container is created as without annotations, and the log states the
// reason.
func TestMalformedAnnotations(t *testing.T) {
	n := newNode(t)
	agent := n.agent(installed(t))
	for name, annotations := range map[string]map[string]string{
		"not-a-truth":   {"lissom.dev/run": "yes"},
		"empty":         {"lissom.dev/run": ""},
		"no-option":     {"lissom.dev/run": "true", "lissom.dev/options": "speed=fast"},
		"no-value":      {"lissom.dev/run": "true", "lissom.dev/options": "cpus"},
		"zero":          {"lissom.dev/run": "true", "lissom.dev/options": "cpus=0"},
		"too-many":      {"lissom.dev/run": "true", "lissom.dev/options": "cpus=1025"},
		"overflow":      {"lissom.dev/run": "true", "lissom.dev/options": "cpus=99999999999999999999"},
		"help":          {"lissom.dev/run": "true", "lissom.dev/options": "help"},
		"other-folder":  {"lissom.dev/run": "true", "lissom.dev/options": "print-env=/tmp"},
		"statistics":    {"lissom.dev/run": "true", "lissom.dev/options": "stats-file=/tmp/stats"},
		"wrong-word":    {"lissom.dev/run": "true", "lissom.dev/options": "switch=USER"},
		"twice":         {"lissom.dev/run": "true", "lissom.dev/options": "cpus=2,cpus=3"},
		"not-text":      {"lissom.dev/run": "true", "lissom.dev/options": "cpus=2\x00,\x01"},
		"very-long":     {"lissom.dev/run": "true", "lissom.dev/options": strings.Repeat("cpus=", 20_000)},
		"own-container": {"lissom.dev/run": "true", "lissom.dev/options.own-container": "idle=never"},
	} {
		t.Run(name, func(t *testing.T) {
			n.create(asked{container: name, annotations: annotations, environment: []string{"A=b"}}).checkNative(t)
			line := agent.said("runs natively", of(name))
			if line["level"] != "WARN" || !strings.Contains(line["reason"].(string), "annotation lissom.dev/") {
				t.Errorf("the log says: %v", line)
			}
		})
	}
	if !n.create(optedIn()).isAdjusted() {
		t.Error("a good one afterwards was not adjusted")
	}
}

// TestWrongVariables: the container is created as without annotations, and the log names the
// variable.
func TestWrongVariables(t *testing.T) {
	n := newNode(t)
	agent := n.agent(installed(t))
	wrong := []string{"LISSOM_CPUS=0", "LISSOM_MAX_THREADS=x", "LISSOM_SWITCH=", "LD_PRELOAD=a\nb.so"}
	for _, variable := range wrong {
		name, _, _ := strings.Cut(variable, "=")
		t.Run(name, func(t *testing.T) {
			a := optedIn(variable)
			a.container = strings.ToLower(name)
			n.create(a).checkNative(t)
			line := agent.said("runs natively", of(a.container))
			if !strings.Contains(line["reason"].(string), name) {
				t.Errorf("the log says: %v", line)
			}
		})
	}
}

func TestMountsInTheWay(t *testing.T) {
	n := newNode(t)
	agent := n.agent(installed(t))
	for at, want := range map[string]bool{"/": false, "/.lissom": false, "/.lissom/": false, "/.lissom/lib64": false, "/.lissom2": true, "/opt": true} {
		a := optedIn()
		a.container = "at" + strings.ReplaceAll(at, "/", "-")
		a.mounts = []*api.Mount{{Destination: at, Source: "/srv", Type: "bind"}}
		made := n.create(a)
		if made.isAdjusted() != want {
			t.Errorf("with a mount at %s: adjusted: %v", at, made.isAdjusted())
		}
		if !want {
			made.checkNative(t)
			agent.said("runs natively", of(a.container))
		}
	}
}
