// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Folders of the runtime's folder that the loader's token $LIB stands for: that of Debian and its
// kin, of Fedora, SUSE and their kin, and of distributions with a single one.
//
// The token is what keeps the library out of programs of another libc: glibc puts one of these
// names in its place, while musl takes it as it is, finds no such file, and goes on without. So it
// need not be known whose libc a container has, which NRI does not tell: when a container is
// created its root file system is not there yet.
var libFolders = []string{"lib/x86_64-linux-gnu", "lib64", "lib"}

// currentFile holds the name of the library that new containers get. Others beside it are for
// containers that run already.
const currentFile = "current"

// library returns the file name of the library in folder, if the folder is such that a program may
// load from it.
func library(folder string) (string, error) {
	content, err := os.ReadFile(filepath.Join(folder, currentFile))
	if err != nil {
		return "", fmt.Errorf("no runtime is installed: %w", err)
	}
	name := strings.TrimSpace(string(content))
	if !isRuntime(name) || name != filepath.Base(name) {
		return "", fmt.Errorf("%s/%s does not name a library of lissom", folder, currentFile)
	}
	if err := trusted(folder, fs.ModeDir); err != nil {
		return "", err
	}
	for _, lib := range libFolders {
		if err := trusted(filepath.Join(folder, lib), fs.ModeDir); err != nil {
			return "", err
		}
		if err := trusted(filepath.Join(folder, lib, name), 0); err != nil {
			return "", err
		}
	}
	return name, nil
}

// trusted: of this type, and nobody but root can change it.
func trusted(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case info.Mode().Type() != kind:
		return fmt.Errorf("%s is of the wrong type", path)
	case owner != 0:
		return fmt.Errorf("%s belongs to user %d, not to root", path, owner)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be changed by others than root", path)
	}
	return nil
}

// install writes the library of the lissom binary into folder. The libraries of other versions
// stay: containers that were started with them load them whenever they start a program.
func install(lissom, folder string) (string, error) {
	unpacked := filepath.Join(folder, ".unpacked")
	if err := os.RemoveAll(unpacked); err != nil {
		return "", err
	}
	defer os.RemoveAll(unpacked)
	if output, err := exec.Command(lissom, "unpack", unpacked).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s unpack %s: %w: %s", lissom, unpacked, err, output)
	}
	entries, err := os.ReadDir(unpacked)
	if err != nil {
		return "", err
	}
	if len(entries) != 1 || !isRuntime(entries[0].Name()) {
		return "", fmt.Errorf("%s unpack %s did not write one library", lissom, unpacked)
	}
	name := entries[0].Name()
	for _, lib := range libFolders {
		if err := os.MkdirAll(filepath.Join(folder, lib), 0o755); err != nil {
			return "", err
		}
		err := replace(filepath.Join(folder, lib, name), func(temporary string) error {
			return os.Link(filepath.Join(unpacked, name), temporary)
		})
		if err != nil {
			return "", err
		}
	}
	err = replace(filepath.Join(folder, currentFile), func(temporary string) error {
		return os.WriteFile(temporary, []byte(name+"\n"), 0o644)
	})
	return name, err
}

// replace puts what make writes under a temporary name in the place of path, so that nobody sees
// half of it.
func replace(path string, make func(temporary string) error) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := make(temporary); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
