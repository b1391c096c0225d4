// SPDX-License-Identifier: MIT

package tests

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
)

func TestNoAgent(t *testing.T) {
	newNode(t).create(optedIn()).checkNative(t)
}

func TestAgentIsKilled(t *testing.T) {
	n, folder := newNode(t), installed(t)
	first := n.agent(folder)
	before := n.create(optedIn())
	if !before.isAdjusted() {
		t.Fatal("the first container was not adjusted")
	}
	first.signal(syscall.SIGKILL)
	n.create(optedIn()).checkNative(t)
	<-first.ended
	n.create(optedIn()).checkNative(t)

	second := n.agent(folder)
	if !n.create(optedIn()).isAdjusted() {
		t.Error("no container is adjusted after the agent was started again")
	}
	// It knows the containers adjusted by its predecessor. The later container was synchronized
	// afterwards.
	if got := second.said("synchronized", nil)["under_lissom"]; got != 1.0 {
		t.Errorf("it found %v containers under lissom, want 1", got)
	}
}

func TestAgentIsKilledAmidstCreations(t *testing.T) {
	n, folder := newNode(t), installed(t)
	agent := n.agent(folder)
	ready := make(chan struct{})
	go func() {
		<-ready
		agent.signal(syscall.SIGKILL)
	}()
	adjusted := 0
	for i := range 200 {
		if i == 20 {
			close(ready)
		}
		if n.create(optedIn()).isAdjusted() {
			adjusted++
		}
	}
	if adjusted < 20 {
		t.Errorf("%d of 200 were adjusted, want at least the 20 before the agent was killed", adjusted)
	}
	<-agent.ended
	n.create(optedIn()).checkNative(t)
}

// TestAgentIsStopped: the agent does not answer; NRI waits for its time limit and continues.
func TestAgentIsStopped(t *testing.T) {
	adaptation.SetPluginRequestTimeout(500 * time.Millisecond)
	t.Cleanup(func() { adaptation.SetPluginRequestTimeout(adaptation.DefaultPluginRequestTimeout) })
	n, folder := newNode(t), installed(t)
	agent := n.agent(folder)
	agent.signal(syscall.SIGSTOP)
	eventually(t, "it is stopped", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", agent.command.Process.Pid))
		return err == nil && strings.Contains(string(state), "\nState:\tT")
	})
	n.create(optedIn()).checkNative(t)
	agent.signal(syscall.SIGCONT)
	eventually(t, "containers are adjusted again", func() bool { return n.create(optedIn()).isAdjusted() })
}

func TestAgentEndsAtASignal(t *testing.T) {
	n, folder := newNode(t), installed(t)
	agent := n.agent(folder)
	agent.signal(syscall.SIGTERM)
	<-agent.ended
	if code := agent.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	n.create(optedIn()).checkNative(t)
}

func TestContainerRuntimeComesLater(t *testing.T) {
	n := newNode(t)
	n.stop()
	agent := startAgent(t, "-socket", n.socket, "-folder", installed(t))
	agent.said("not connected", nil)
	n.start()
	agent.awaitConnection()
}

// TestContainerRuntimeIsSilent: the container runtime accepts the connection and sends nothing.
func TestContainerRuntimeIsSilent(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	agent := startAgent(t, "-socket", socket, "-folder", t.TempDir())
	eventually(t, "it tries again", func() bool { return len(agent.lines("not connected")) >= 2 })
}

// forgetful is a container runtime that, to the plugin, seems to die right after the registration.
type forgetful struct{}

func (forgetful) RegisterPlugin(context.Context, *api.RegisterPluginRequest) (*api.Empty, error) {
	return &api.Empty{}, nil
}

func (forgetful) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{}, nil
}

// TestContainerRuntimeForgetsTheAgent: the agent exits, to be restarted, since the NRI library
// would wait forever.
func TestContainerRuntimeForgetsTheAgent(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		calls, err := multiplex.Multiplex(connection).Listen(multiplex.RuntimeServiceConn)
		if err != nil {
			return
		}
		server, err := ttrpc.NewServer()
		if err != nil {
			return
		}
		api.RegisterRuntimeService(server, forgetful{})
		server.Serve(context.Background(), calls)
	}()
	agent := startAgent(t, "-socket", socket, "-folder", t.TempDir())
	agent.said("ends", nil)
	<-agent.ended
	if code := agent.command.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// TestRuntimeFolder: the runtime is installed later, damaged, or writable by others. Each container
// is created all the same.
func TestRuntimeFolder(t *testing.T) {
	needRoot(t)
	n, folder := newNode(t), filepath.Join(t.TempDir(), "lissom")
	agent := n.agent(folder)
	n.create(optedIn()).checkNative(t)
	if code, body := agent.get("/readyz"); code != 503 || !strings.Contains(body, "no runtime is installed") {
		t.Errorf("/readyz says %d %q", code, body)
	}
	install(t, folder)
	if !n.create(optedIn()).isAdjusted() {
		t.Fatal("the container was not adjusted after the runtime was installed")
	}
	if code, _ := agent.get("/readyz"); code != 200 {
		t.Errorf("/readyz says %d", code)
	}
	library := filepath.Join(folder, "lib64", current(t, folder))
	for name, damage := range map[string]func() error{
		"writable":    func() error { return os.Chmod(library, 0o777) },
		"not-roots":   func() error { return os.Chown(library, 1000, 1000) },
		"gone":        func() error { return os.Remove(library) },
		"a-link":      func() error { os.Remove(library); return os.Symlink("/etc/passwd", library) },
		"a-folder":    func() error { os.Remove(library); return os.Mkdir(library, 0o755) },
		"open-folder": func() error { return os.Chmod(filepath.Dir(library), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			os.RemoveAll(folder)
			install(t, folder)
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			a := optedIn()
			a.container = name
			n.create(a).checkNative(t)
			agent.said("runs natively", of(name))
		})
	}
	os.RemoveAll(folder)
	install(t, folder)
	if !n.create(optedIn()).isAdjusted() {
		t.Error("the container was not adjusted after the runtime was installed again")
	}
}

// TestNoAnswerOfLissom: the binary is missing, prints something else, or hangs. Each container is
// created all the same, within NRI's time limit.
func TestNoAnswerOfLissom(t *testing.T) {
	n, folder := newNode(t), installed(t)
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "lissom")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct{ lissom, reason string }{
		"missing": {filepath.Join(t.TempDir(), "lissom"), "no such file"},
		"text":    {script("echo text"), "printed \"text"},
		"fails":   {script("echo wrong >&2; exit 1"), "wrong"},
		"killed":  {script("kill -9 $$"), "killed"},
		"hangs":   {script("exec sleep 60"), "did not answer within 1s"},
		"child":   {script("sleep 20; true"), "did not answer within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			agent := n.agent(folder, "-lissom", c.lissom)
			defer func() { agent.signal(syscall.SIGKILL); <-agent.ended }()
			a := optedIn()
			a.container = name
			n.create(a).checkNative(t)
			line := agent.said("runs natively", of(name))
			if !strings.Contains(line["reason"].(string), c.reason) {
				t.Errorf("the log says: %v", line)
			}
			if code, body := agent.get("/readyz"); code != 503 || !strings.Contains(body, c.reason) {
				t.Errorf("/readyz says %d %q", code, body)
			}
		})
	}
}

func TestInstall(t *testing.T) {
	folder := installed(t)
	name := current(t, folder)
	older := filepath.Join(folder, "lib64", "liblissom-0123456789abcdef.so")
	if err := os.WriteFile(older, []byte("an older version"), 0o755); err != nil {
		t.Fatal(err)
	}
	install(t, folder)
	if _, err := os.Stat(older); err != nil {
		t.Errorf("what running containers use: %v", err)
	}
	for _, lib := range []string{"lib", "lib64", "lib/x86_64-linux-gnu"} {
		info, err := os.Stat(filepath.Join(folder, lib, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o755 || info.Size() < 100_000 {
			t.Errorf("%s: mode %v, %d bytes", lib, info.Mode(), info.Size())
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 { // lib, lib64
		t.Errorf("left in the folder: %v", entries)
	}
}

// otherPlugin preloads a library of its own.
type otherPlugin struct{}

func (otherPlugin) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjustment := &api.ContainerAdjustment{}
	adjustment.AddEnv("LD_PRELOAD", "/other/plugin.so")
	return adjustment, nil, nil
}

// TestAnotherPlugin: NRI takes two plugins that set one variable for a conflict, and would not
// create the container.
func TestAnotherPlugin(t *testing.T) {
	n, folder := newNode(t), installed(t)
	n.agent(folder)
	other, err := stub.New(otherPlugin{}, stub.WithPluginName("other"), stub.WithPluginIdx("10"), stub.WithSocketPath(n.socket),
		stub.WithOnClose(func() {}))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer other.Stop()
	want := "/.lissom/$LIB/" + current(t, folder) + ":/other/plugin.so"
	eventually(t, "both are heard", func() bool { return n.create(optedIn()).environment["LD_PRELOAD"] == want })
}
