// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

// answerTime limits `lissom run --print-env`. NRI waits 2 s for the agent.
const answerTime = time.Second

// underLissom returns the variables that `lissom run` with these options would change for a program
// with this environment, and the file name of the library that they preload.
func underLissom(
	ctx context.Context, lissom string, environment, options []string,
) (set map[string]string, library string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	arguments := append([]string{"run", "--print-env=" + containerFolder + "/$LIB"}, options...)
	command := exec.CommandContext(ctx, lissom, arguments...)
	command.Env = append([]string{}, environment...) // nil would be the agent's
	command.WaitDelay = answerTime / 10              // for its children, which may hang, too
	output, err := command.Output()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, "", fmt.Errorf("%s did not answer within %v", lissom, answerTime)
	case errors.As(err, &failed) && failed.Exited():
		// Without clap's help for the command line.
		message, _, _ := strings.Cut(string(failed.Stderr), "\n\n")
		message = strings.TrimPrefix(message, "error: ")
		return nil, "", fmt.Errorf("%s run: %s", lissom, strings.TrimSpace(message))
	case err != nil:
		return nil, "", fmt.Errorf("cannot run %s: %w; set -lissom", lissom, err)
	}
	set = map[string]string{}
	for line := range strings.Lines(string(output)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			return nil, "", fmt.Errorf("%s run --print-env printed %q", lissom, line)
		}
		set[name] = value
	}
	first, _, _ := strings.Cut(set["LD_PRELOAD"], ":")
	if !isOurs(first) {
		return nil, "", errors.New("switched off by LISSOM, LISSOM_SWITCH or switch=off")
	}
	return set, path.Base(first), nil
}

// isRuntime reports whether a file name is that of a library of lissom.
func isRuntime(name string) bool {
	return strings.HasPrefix(name, "liblissom-") && strings.HasSuffix(name, ".so")
}

// isOurs reports whether an entry of LD_PRELOAD is the library in the agent's mount.
func isOurs(entry string) bool {
	return strings.HasPrefix(entry, containerFolder+"/") && isRuntime(path.Base(entry))
}

// isSet reports whether a list of NAME=VALUE has this name.
func isSet(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return strings.HasPrefix(entry, name+"=")
	})
}
