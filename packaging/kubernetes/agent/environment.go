// SPDX-License-Identifier: MIT

package main

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// environment is a container's environment as in NRI: variables of image and pod together.
type environment map[string]string

func environmentOf(list []string) environment {
	e := environment{}
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		e[name] = value
	}
	return e
}

// nativeBecause returns why the container's own environment disables lissom; "" if it does not.
func (e environment) nativeBecause(chosen map[string]string) string {
	switch off := e["LISSOM"]; off {
	case "0", "off", "no", "false":
		return "switched off by LISSOM=" + off
	}
	level, ok := chosen["LISSOM_SWITCH"]
	if !ok {
		level = e["LISSOM_SWITCH"]
	}
	if level == "off" {
		return "switched off by switch=off"
	}
	return ""
}

// underLissom returns the variables that make the container's programs run as by `lissom run`;
// src/run.rs gives the reason for each.
func (e environment) underLissom(library string, chosen map[string]string) map[string]string {
	set := map[string]string{
		"LD_PRELOAD": strings.Join(append([]string{library}, e.othersPreloaded()...), ":"),
	}
	// The defaults of `lissom run`, which enable more than the runtime's own.
	for name, value := range map[string]string{
		"LISSOM_SWITCH":         "auto",
		"LISSOM_SPIN":           "auto",
		"LISSOM_SPIN_THRESHOLD": "auto",
		"LISSOM_IDLE":           "haltpoll",
		"LISSOM_SHARE":          "auto",
	} {
		if _, ok := e[name]; !ok {
			set[name] = value
		}
	}
	for name, value := range chosen {
		set[name] = value
	}
	e.calmOpenMP(set)
	e.sizeTeams(set)
	return set
}

func (e environment) othersPreloaded() []string {
	entries := strings.FieldsFunc(e["LD_PRELOAD"], func(r rune) bool { return r == ' ' || r == ':' })
	return slices.DeleteFunc(entries, isRuntime)
}

// isRuntime reports whether an entry of LD_PRELOAD was put there by lissom.
func isRuntime(entry string) bool {
	name := path.Base(entry)
	return strings.HasPrefix(name, "liblissom-") && strings.HasSuffix(name, ".so")
}

// calmOpenMP lets idle slots poll instead of OpenMP's threads, unless the user has decided how
// those spin.
func (e environment) calmOpenMP(set map[string]string) {
	policy, ok := e["OMP_WAIT_POLICY"]
	if ok && !strings.EqualFold(policy, "active") {
		return
	}
	for _, name := range []string{"GOMP_SPINCOUNT", "KMP_BLOCKTIME"} {
		if _, ok := e[name]; ok {
			return
		}
	}
	set["GOMP_SPINCOUNT"] = "0"
	set["KMP_BLOCKTIME"] = "0"
	set["LISSOM_OPENMP"] = "poll"
}

// sizeTeams makes teams of max-threads threads, of which the number that the user wanted is active.
// Variables of a `lissom run` in the image stay as they are: it has done this already.
func (e environment) sizeTeams(set map[string]string) {
	if _, done := e["LISSOM_ACTIVE_THREADS"]; done {
		delete(set, "LISSOM_MAX_THREADS")
		return
	}
	most, chosen := set["LISSOM_MAX_THREADS"]
	if !chosen {
		// `lissom run` would refuse an invalid number; a container is started all the same.
		if most = e["LISSOM_MAX_THREADS"]; !between(1, maxSlots)(most) {
			return
		}
	}
	first, _, _ := strings.Cut(e["OMP_NUM_THREADS"], ",")
	if n, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && n >= 1 && n <= maxSlots {
		set["LISSOM_ACTIVE_THREADS"] = strconv.Itoa(n)
	}
	set["OMP_NUM_THREADS"] = most
}
