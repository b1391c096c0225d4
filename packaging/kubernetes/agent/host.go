// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// libFolders are the folders below the runtime's folder that the loader's token $LIB can stand for:
// those of Debian and its derivatives, of Fedora, SUSE and theirs, and of distributions with a
// single one.
//
// The token keeps the library out of programs of another libc. glibc replaces it by one of these
// names; musl takes it literally, finds no such file, and continues without. So the agent need not
// know a container's libc. NRI does not tell: the root file system does not exist yet when a
// container is created.
var libFolders = []string{"lib/x86_64-linux-gnu", "lib64", "lib"}

// checkLibrary returns an error unless programs may safely load this library from folder.
func checkLibrary(folder, name string) error {
	if err := trusted(folder, fs.ModeDir); err != nil {
		return err
	}
	for _, lib := range libFolders {
		if err := trusted(filepath.Join(folder, lib), fs.ModeDir); err != nil {
			return err
		}
		if err := trusted(filepath.Join(folder, lib, name), 0); err != nil {
			return err
		}
	}
	return nil
}

// trusted returns an error unless path is of this type and only root can change it.
func trusted(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("no runtime is installed: %w; `lissom-agent install` installs it", err)
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

// install writes the library of the lissom binary into folder. Libraries of other versions stay:
// containers started with them load them whenever they start a program.
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
	return name, nil
}

// replace calls make with a temporary name and renames the result to path, so that no process sees
// an incomplete file.
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
