// SPDX-License-Identifier: MIT

// Package tests runs the real agent with the real lissom binary, under containerd's own
// implementation of NRI and under containerd itself.
package tests

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// patience is the longest time to wait for any event before it counts as not happening.
const patience = 60 * time.Second

var agentBinary string

func TestMain(m *testing.M) {
	// of the NRI library, whose messages are checked elsewhere
	logrus.SetLevel(logrus.FatalLevel)
	folder, err := os.MkdirTemp("", "lissom-agent-test-")
	if err != nil {
		panic(err)
	}
	agentBinary = filepath.Join(folder, "lissom-agent")
	build := exec.Command("go", "build", "-o", agentBinary, ".")
	build.Dir = "../agent"
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the agent cannot be built: %v\n%s", err, output)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// lissomBinary returns the result of `make build`, or LISSOM_TEST_BIN.
func lissomBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("LISSOM_TEST_BIN")
	if path == "" {
		path = "../../../target/release/lissom"
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("no lissom binary: run `make build`, or set LISSOM_TEST_BIN: %v", err)
	}
	return path
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the agent takes only a runtime that belongs to root")
	}
}

// installed returns a folder into which the agent has installed the runtime.
func installed(t *testing.T) string {
	t.Helper()
	needRoot(t)
	folder := filepath.Join(t.TempDir(), "lissom")
	install(t, folder)
	return folder
}

func install(t *testing.T, folder string) {
	t.Helper()
	mustMakeFolder(t, folder)
	command := exec.Command(agentBinary, "-lissom", lissomBinary(t), "-folder", folder, "install")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("install: %v\n%s", err, output)
	}
}

// current returns the file name of the only library in the folder.
func current(t *testing.T, folder string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "lib64", "liblissom-*.so"))
	if err != nil || len(found) != 1 {
		t.Fatalf("libraries in %s: %v, %v", folder, found, err)
	}
	return filepath.Base(found[0])
}

// agent is a running agent.
type agent struct {
	t       *testing.T
	command *exec.Cmd
	ended   chan struct{}

	mutex sync.Mutex
	log   []map[string]any
}

func startAgent(t *testing.T, arguments ...string) *agent {
	t.Helper()
	a := &agent{t: t, ended: make(chan struct{})}
	a.command = exec.Command(agentBinary, append([]string{"-listen", "127.0.0.1:0", "-lissom", lissomBinary(t)}, arguments...)...)
	output, err := a.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(a.ended)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var line map[string]any
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				line = map[string]any{"msg": "not JSON", "text": lines.Text()}
			}
			a.mutex.Lock()
			a.log = append(a.log, line)
			a.mutex.Unlock()
		}
		a.command.Wait()
	}()
	t.Cleanup(func() {
		a.signal(syscall.SIGKILL)
		<-a.ended
		if t.Failed() {
			for _, line := range a.lines("") {
				t.Log("agent: ", line)
			}
		}
	})
	return a
}

func (a *agent) signal(signal syscall.Signal) { a.command.Process.Signal(signal) }

func (a *agent) lines(message string) []map[string]any {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var found []map[string]any
	for _, line := range a.log {
		if message == "" || line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

// said waits for a matching line of the log, and returns the last one.
func (a *agent) said(message string, holds func(line map[string]any) bool) map[string]any {
	a.t.Helper()
	var found map[string]any
	eventually(a.t, "the agent says "+message, func() bool {
		for _, line := range a.lines(message) {
			if holds == nil || holds(line) {
				found = line
			}
		}
		return found != nil
	})
	return found
}

// of matches lines about a container.
func of(container string) func(map[string]any) bool {
	return func(line map[string]any) bool {
		name, _ := line["container"].(map[string]any)
		return name["name"] == container
	}
}

func (a *agent) get(path string) (int, string) {
	a.t.Helper()
	address := a.said("listens", nil)["address"].(string)
	response, err := http.Get("http://" + address + path)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func (a *agent) metric(line string) bool {
	a.t.Helper()
	_, body := a.get("/metrics")
	return strings.Contains(body, "\n"+line+"\n")
}

func (a *agent) isConnected() bool { return a.metric("lissom_agent_connected 1") }

func (a *agent) awaitConnection() {
	a.t.Helper()
	eventually(a.t, "the agent is connected", a.isConnected)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it never came about that %s", what)
		}
	}
}

func mustMakeFolder(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
}
