// SPDX-License-Identifier: MIT

package tests

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

// node is the container runtime's side of NRI: containerd's library behind its real socket.
type node struct {
	t          *testing.T
	socket     string
	adaptation *adaptation.Adaptation

	mutex      sync.Mutex
	containers map[string]*api.Container
	pods       map[string]*api.PodSandbox
	last       int
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, containers: map[string]*api.Container{}, pods: map[string]*api.PodSandbox{}}
	n.socket = filepath.Join(t.TempDir(), "nri.sock")
	n.start()
	t.Cleanup(n.stop)
	return n
}

func (n *node) start() {
	n.t.Helper()
	empty := n.t.TempDir()
	var err error
	n.adaptation, err = adaptation.New("a-node", "1.0", n.synchronize, n.update,
		adaptation.WithSocketPath(n.socket), adaptation.WithPluginPath(empty), adaptation.WithPluginConfigPath(empty))
	if err == nil {
		err = n.adaptation.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) stop() { n.adaptation.Stop() }

func (n *node) synchronize(ctx context.Context, plugin adaptation.SyncCB) error {
	n.mutex.Lock()
	pods, containers := slices.Collect(maps.Values(n.pods)), slices.Collect(maps.Values(n.containers))
	n.mutex.Unlock()
	_, err := plugin(ctx, pods, containers)
	return err
}

func (n *node) update(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
	return nil, nil
}

// agent starts an agent for this node, and waits until it is connected.
func (n *node) agent(folder string, arguments ...string) *agent {
	n.t.Helper()
	a := startAgent(n.t, append([]string{"-socket", n.socket, "-folder", folder}, arguments...)...)
	a.awaitConnection()
	return a
}

// asked is a pod's request.
type asked struct {
	namespace   string
	annotations map[string]string
	container   string
	environment []string
	mounts      []*api.Mount
	cpus        float64
}

func (a asked) pod(id string) *api.PodSandbox {
	return &api.PodSandbox{Id: "pod-" + id, Name: "a-pod", Namespace: a.namespace, Annotations: a.annotations}
}

func resources(cpus float64) *api.LinuxResources {
	r := &api.LinuxResources{Cpu: &api.LinuxCPU{}}
	if cpus > 0 {
		r.Cpu.Quota, r.Cpu.Period = api.Int64(int64(cpus*100_000)), api.UInt64(uint64(100_000))
	}
	return r
}

// created is a container as it would be started.
type created struct {
	id          string
	own         map[string]string // the pod's own
	environment map[string]string
	mounts      []*api.Mount // added by the agent
}

// create requests a container. It fails the test if the container would not be created.
func (n *node) create(a asked) created {
	n.t.Helper()
	if a.container == "" {
		a.container = "main"
	}
	if a.namespace == "" {
		a.namespace = "default"
	}
	n.mutex.Lock()
	n.last++
	id := string(rune('a' + n.last))
	n.mutex.Unlock()
	pod := a.pod(id)
	container := &api.Container{Id: id, PodSandboxId: pod.Id, Name: a.container, Env: slices.Clone(a.environment),
		Mounts: a.mounts, Linux: &api.LinuxContainer{Resources: resources(a.cpus)}}
	ctx := context.Background()
	response, err := n.adaptation.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: container})
	if err != nil {
		n.t.Fatalf("the container was not created: %v", err)
	}
	made := created{id: id, environment: map[string]string{}}
	for _, entry := range a.environment {
		name, value, _ := strings.Cut(entry, "=")
		made.environment[name] = value
	}
	made.own = maps.Clone(made.environment)
	for _, variable := range response.GetAdjust().GetEnv() {
		if _, removed := variable.IsMarkedForRemoval(); !removed {
			made.environment[variable.Key] = variable.Value
		}
	}
	made.mounts = response.GetAdjust().GetMounts()
	container.Env = nil
	for name, value := range made.environment {
		container.Env = append(container.Env, name+"="+value)
	}
	n.mutex.Lock()
	n.pods[pod.Id], n.containers[id] = pod, container
	n.mutex.Unlock()
	if err := n.adaptation.PostCreateContainer(ctx, &api.PostCreateContainerRequest{Pod: pod, Container: container}); err != nil {
		n.t.Fatal(err)
	}
	return made
}

func (n *node) resize(c created, cpus float64) {
	n.t.Helper()
	ctx := context.Background()
	container := n.containers[c.id]
	pod := n.pods[container.PodSandboxId]
	request := &api.UpdateContainerRequest{Pod: pod, Container: container, LinuxResources: resources(cpus)}
	if _, err := n.adaptation.UpdateContainer(ctx, request); err != nil {
		n.t.Fatalf("the container was not resized: %v", err)
	}
	container.Linux.Resources = resources(cpus)
	if err := n.adaptation.PostUpdateContainer(ctx, &api.PostUpdateContainerRequest{Pod: pod, Container: container}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) remove(c created) {
	n.t.Helper()
	container := n.containers[c.id]
	pod := n.pods[container.PodSandboxId]
	if err := n.adaptation.RemoveContainer(context.Background(), &api.RemoveContainerRequest{Pod: pod, Container: container}); err != nil {
		n.t.Fatal(err)
	}
	n.mutex.Lock()
	delete(n.containers, c.id)
	n.mutex.Unlock()
}

func (c created) isAdjusted() bool {
	return len(c.mounts) > 0 && strings.Contains(c.environment["LD_PRELOAD"], "/liblissom-")
}

// checkNative checks that the container is as requested, without any adjustment.
func (c created) checkNative(t *testing.T) {
	t.Helper()
	if len(c.mounts) > 0 || !maps.Equal(c.environment, c.own) {
		t.Errorf("the container was adjusted: %v, %v", c.environment, c.mounts)
	}
}
