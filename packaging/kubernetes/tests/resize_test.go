// SPDX-License-Identifier: MIT

package tests

import (
	"net"
	"path/filepath"
	"testing"
)

func TestResize(t *testing.T) {
	n := newNode(t)
	agent := n.agent(installed(t))
	a := optedIn()
	a.cpus = 2
	made := n.create(a)
	line := `lissom_container_cpus{namespace="default",pod="a-pod",container="main"} `
	if !agent.metric(line + "2") {
		t.Error("the limit is not shown")
	}
	n.resize(made, 4.5)
	if !agent.metric(line+"4.5") || !agent.metric("lissom_agent_resizes_total 1") {
		t.Error("the new limit is not shown")
	}
	for _, message := range []string{"is resized", "was resized"} {
		if got := agent.said(message, of("main"))["cpus"]; got != 4.5 {
			t.Errorf("%s: cpus is %v", message, got)
		}
	}
	n.resize(made, 0)
	if !agent.metric(line + "0") {
		t.Error("it is not shown that the limit is gone")
	}

	native := n.create(asked{container: "native", cpus: 1})
	n.resize(native, 2)
	if !agent.metric("lissom_agent_resizes_total 2") {
		t.Error("a container that is not under lissom was counted")
	}

	n.remove(made)
	if agent.metric(line + "0") {
		t.Error("a container that was removed is still shown")
	}
	for _, line := range []string{
		`lissom_agent_containers_total{result="adjusted"} 1`,
		`lissom_agent_containers_total{result="not_asked"} 1`,
		`lissom_agent_containers_total{result="failed"} 0`,
	} {
		if !agent.metric(line) {
			t.Errorf("not shown: %s", line)
		}
	}
}

func TestManagerIsShown(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	socket := filepath.Join(folder, "manager.sock")
	n := newNode(t)
	runtime := installed(t)
	agent := n.agent(runtime, "-manager", socket)

	made := n.create(optedIn())
	if !made.isAdjusted() || len(made.mounts) != 1 || made.environment["LISSOM_MANAGER"] != "" {
		t.Errorf("without a manager: %v, %v", made.environment, made.mounts)
	}
	agent.said("runs without the manager", of("main"))

	mustMakeFolder(t, folder)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	made = n.create(optedIn())
	if len(made.mounts) != 2 || made.environment["LISSOM_MANAGER"] != "/.lissom-manager/manager.sock" {
		t.Fatalf("with a manager: %v, %v", made.environment, made.mounts)
	}
	if m := made.mounts[1]; m.Source != folder || m.Destination != "/.lissom-manager" {
		t.Errorf("mount: %v", m)
	}
}

// TestManagerIsNotShown: without the flag no manager is mounted, even if there is one.
func TestManagerIsNotShown(t *testing.T) {
	n := newNode(t)
	n.agent(installed(t))
	if made := n.create(optedIn()); made.environment["LISSOM_MANAGER"] != "" || len(made.mounts) != 1 {
		t.Errorf("%v, %v", made.environment, made.mounts)
	}
}
