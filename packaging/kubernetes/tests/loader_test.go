// SPDX-License-Identifier: MIT

package tests

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestLoaders runs real loaders with the agent's environment, in root file systems of their own.
// NRI does not tell a container's libc, so each libc has to work with the same environment.
func TestLoaders(t *testing.T) {
	n, folder := newNode(t), installed(t)
	n.agent(folder)
	made := n.create(optedIn())
	for kind, want := range map[string]string{"glibc": "/.lissom/lib/", "musl": "none", "static": "none", "old-glibc": "/.lissom/lib/x86_64-linux-gnu/"} {
		t.Run(kind, func(t *testing.T) {
			root := t.TempDir()
			if missing := rootKinds[kind](t, root); missing != "" {
				t.Skipf("this machine has no %s", missing)
			}
			copyTree(t, folder, filepath.Join(root, ".lissom"))
			mountProc(t, root)
			output := show(t, root, made.environment)
			if !strings.Contains(output, "\nsum: 40000\n") {
				t.Errorf("it did not run to its end: %s", output)
			}
			if !strings.HasPrefix(output, "library: "+want) {
				t.Errorf("want library %s:\n%s", want, output)
			}
			// The loader must not print anything into the program's output.
			if strings.Contains(output, "ld.so") || strings.Contains(output, "Error") {
				t.Errorf("the loader complains: %s", output)
			}
		})
	}
}

// TestNeededVersions checks that the oldest documented glibc can load the library, wherever the
// library was built.
func TestNeededVersions(t *testing.T) {
	folder := installed(t)
	library, err := elf.Open(filepath.Join(folder, "lib64", current(t, folder)))
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	needed, err := library.DynamicVersionNeeds()
	if err != nil {
		t.Fatal(err)
	}
	if len(needed) == 0 {
		t.Error("the library needs nothing: that is not so")
	}
	for _, file := range needed {
		for _, version := range file.Needs {
			if number, err := strconv.Atoi(strings.SplitN(version.Dep, ".", 3)[1]); err != nil || number > 31 {
				t.Errorf("the library needs %s of %s", version.Dep, file.Name)
			}
		}
	}
}

// TestLibraryUnderMusl: even without the token, a program of another libc runs; the library does
// nothing there.
func TestLibraryUnderMusl(t *testing.T) {
	folder, root := installed(t), t.TempDir()
	if missing := rootKinds["musl"](t, root); missing != "" {
		t.Skipf("this machine has no %s", missing)
	}
	copyTree(t, folder, filepath.Join(root, ".lissom"))
	mountProc(t, root)
	library := "/.lissom/lib/" + current(t, folder)
	output := show(t, root, map[string]string{"LD_PRELOAD": library, "LISSOM_SWITCH": "user", "LISSOM_SPIN": "auto"})
	if output != "library: "+library+"\npreload: "+library+"\nsum: 40000\n" {
		t.Errorf("%s", output)
	}
}

func show(t *testing.T, root string, environment map[string]string) string {
	t.Helper()
	command := exec.Command("/show")
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	command.Env = []string{}
	for name, value := range environment {
		command.Env = append(command.Env, name+"="+value)
	}
	slices.Sort(command.Env)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("/show: %v\n%s", err, output)
	}
	return string(output)
}

func mountProc(t *testing.T, root string) {
	t.Helper()
	at := filepath.Join(root, "proc")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("proc", at, "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(at, syscall.MNT_DETACH) })
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if output, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, output)
	}
}
