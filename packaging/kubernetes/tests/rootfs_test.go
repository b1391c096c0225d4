// SPDX-License-Identifier: MIT

package tests

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// This file makes root file systems with programs/show.c at /show, as in images.

const showSource = "programs/show.c"

// rootKinds makes a root file system for each kind of libc in root, or returns what the machine
// lacks.
var rootKinds = map[string]func(t *testing.T, root string) (missing string){
	"glibc": func(t *testing.T, root string) string {
		build(t, root, "gcc", "-O2", "-pthread")
		withLibraries(t, root, "/show")
		return ""
	},
	"static": func(t *testing.T, root string) string {
		build(t, root, "gcc", "-O2", "-pthread", "-static")
		return ""
	},
	"old-glibc": oldGlibc,
	"musl": func(t *testing.T, root string) string {
		if _, err := exec.LookPath("musl-gcc"); err != nil {
			return "musl-gcc (package musl-tools)"
		}
		build(t, root, "musl-gcc", "-O2", "-pthread")
		withLibraries(t, root, "/show")
		return ""
	},
}

// oldGlibc uses the root file system that old-glibc.sh has made for run.sh.
func oldGlibc(t *testing.T, root string) string {
	made := os.Getenv("LISSOM_TEST_OLD_GLIBC")
	if made == "" {
		return "root file system of Debian 11 (old-glibc.sh makes it)"
	}
	copyTree(t, made+"/.", root)
	return ""
}

func build(t *testing.T, root string, compiler ...string) {
	t.Helper()
	command := exec.Command(compiler[0], append(compiler[1:], "-Wall", "-Wextra", "-Werror", "-o", filepath.Join(root, "show"), showSource)...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", compiler, err, output)
	}
}

// withLibraries copies the interpreter and libraries of a program in root; nothing for a static
// one.
func withLibraries(t *testing.T, root, program string) {
	t.Helper()
	program = filepath.Join(root, program)
	headers, err := exec.Command("readelf", "-l", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`interpreter: (/[^\]]+)`).FindStringSubmatch(string(headers))
	if found == nil {
		return
	}
	interpreter := found[1]
	copyFile(t, interpreter, filepath.Join(root, interpreter))
	if strings.Contains(interpreter, "musl") {
		return
	}
	list, err := exec.Command(interpreter, "--list", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`=> (/\S+)`).FindAllStringSubmatch(string(list), -1) {
		copyFile(t, m[1], filepath.Join(root, m[1]))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	source, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(target, source); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
}
