// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Annotations of a pod. With "." and a container's name appended, each applies only to that
// container.
const (
	annotationRun     = "lissom.dev/run"
	annotationOptions = "lissom.dev/options"
)

// option is an option of `lissom run` that a pod may set, with the runtime's variable for it.
type option struct {
	variable string
	valid    func(value string) bool
}

func oneOf(words ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(words, value) }
}

func between(least, most int) func(string) bool {
	return func(value string) bool {
		n, err := strconv.Atoi(value)
		return err == nil && n >= least && n <= most && strconv.Itoa(n) == value
	}
}

func autoOr(valid func(string) bool) func(string) bool {
	return func(value string) bool { return value == "auto" || valid(value) }
}

// options are those of src/cli.rs, except options that need the command itself (statistics, a
// schedule of OpenMP), or whose variable the pod can set itself.
var options = map[string]option{
	"switch":         {"LISSOM_SWITCH", oneOf("auto", "user", "kernel", "off")},
	"spin":           {"LISSOM_SPIN", oneOf("auto", "observe", "off")},
	"spin-threshold": {"LISSOM_SPIN_THRESHOLD", autoOr(between(0, 1_000_000))},
	"cpus":           {"LISSOM_CPUS", between(1, maxSlots)},
	"idle":           {"LISSOM_IDLE", oneOf("sleep", "poll", "haltpoll")},
	"share":          {"LISSOM_SHARE", oneOf("auto", "off")},
	"malleable":      {"LISSOM_MALLEABLE", oneOf("0", "1")},
	"omp-team":       {"LISSOM_OMP_TEAM", oneOf("program", "slots")},
	"max-threads":    {"LISSOM_MAX_THREADS", between(1, maxSlots)},
	"verbose":        {"LISSOM_VERBOSE", oneOf("0", "1")},
}

// maxSlots is LISSOM_MAX_SLOTS of runtime/abi.h.
const maxSlots = 1024

// wanted reports whether a container is to run under lissom: by its own annotation, else by its
// pod's, else by its namespace.
func wanted(annotations map[string]string, container, namespace string, namespaces []string) (bool, error) {
	for _, key := range []string{annotationRun + "." + container, annotationRun} {
		switch value, ok := annotations[key]; {
		case !ok:
		case value == "true":
			return true, nil
		case value == "false":
			return false, nil
		default:
			return false, fmt.Errorf("annotation %s is %q; give \"true\" or \"false\"", key, value)
		}
	}
	return slices.Contains(namespaces, namespace), nil
}

// chosen returns the variables for the container's options.
func chosen(annotations map[string]string, container string) (map[string]string, error) {
	key := annotationOptions + "." + container
	text, ok := annotations[key]
	if !ok {
		key = annotationOptions
		text = annotations[key]
	}
	variables := map[string]string{}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		o, known := options[name]
		if !known {
			return nil, fmt.Errorf("annotation %s: there is no option %q", key, name)
		}
		if !o.valid(value) {
			return nil, fmt.Errorf("annotation %s: %q is no value of %s", key, value, name)
		}
		if _, twice := variables[o.variable]; twice {
			return nil, fmt.Errorf("annotation %s: %s is given twice", key, name)
		}
		variables[o.variable] = value
	}
	return variables, nil
}
