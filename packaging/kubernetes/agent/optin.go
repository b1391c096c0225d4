// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"slices"
	"strings"
)

// Annotations of a pod. With "." and a container's name appended, each applies only to that
// container.
const (
	annotationRun     = "lissom.dev/run"
	annotationOptions = "lissom.dev/options"
)

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

// words returns the parts of a list that are separated by commas or white space.
func words(list string) []string {
	return strings.Fields(strings.ReplaceAll(list, ",", " "))
}

// chosen returns the container's options, as those of `lissom run`, and the key of the annotation
// that they should be in.
func chosen(annotations map[string]string, container string) (options []string, key string) {
	key = annotationOptions + "." + container
	text, ok := annotations[key]
	if !ok {
		key = annotationOptions
		text = annotations[key]
	}
	for _, word := range words(text) {
		options = append(options, "--"+word)
	}
	return options, key
}
