// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/containerd/nri/pkg/api"
)

// Paths of the folders in containers. They are at the top, since no volume of the pod contains a
// top-level folder: the mount point is created in the container's own file system.
const (
	containerFolder  = "/.lissom"
	containerManager = "/.lissom-manager"
)

// plugin handles the container runtime's requests. It never returns an error: NRI would take it for
// a refusal, and the container would not be created.
type plugin struct {
	log        *slog.Logger
	status     *status
	folder     string   // the runtime's folder, on the host and here
	lissom     string   // the binary
	namespaces []string // all their pods are opted in
	manager    string   // socket of `lissom manager`; "": not mounted into containers
}

func (p *plugin) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	p.log.Info("connected", "runtime", runtime, "version", version)
	return 0, nil // the events that have methods
}

func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	byID := map[string]*api.PodSandbox{}
	for _, pod := range pods {
		byID[pod.GetId()] = pod
	}
	p.status.forgetAll()
	for _, container := range containers {
		p.note(byID[container.GetPodSandboxId()], container)
	}
	p.status.connect(true)
	p.log.Info("synchronized", "containers", len(containers), "under_lissom", p.status.managed())
	return nil, nil
}

func (p *plugin) CreateContainer(ctx context.Context, pod *api.PodSandbox, container *api.Container) (adjustment *api.ContainerAdjustment, _ []*api.ContainerUpdate, _ error) {
	log := p.log.With("container", about(pod, container))
	// A crash would cost not only this container's adjustment, but also those of the next
	// seconds.
	defer func() {
		if problem := recover(); problem != nil {
			log.Error("runs natively", "reason", fmt.Sprint(problem), "stack", string(debug.Stack()))
			p.status.count(resultFailed)
			adjustment = nil
		}
	}()
	asked, err := wanted(pod.GetAnnotations(), container.GetName(), pod.GetNamespace(), p.namespaces)
	if err == nil && !asked {
		p.status.count(resultNotAsked)
		return nil, nil, nil
	}
	if err == nil {
		adjustment, err = p.adjustment(ctx, pod, container)
	}
	if err != nil {
		log.Warn("runs natively", "reason", err.Error())
		p.status.count(resultFailed)
		return nil, nil, nil
	}
	log.Info("runs under lissom", "cpus", cpuLimit(container.GetLinux().GetResources()))
	p.status.count(resultAdjusted)
	return adjustment, nil, nil
}

func (p *plugin) adjustment(
	ctx context.Context, pod *api.PodSandbox, container *api.Container,
) (*api.ContainerAdjustment, error) {
	options, key := chosen(pod.GetAnnotations(), container.GetName())
	set, name, err := underLissom(ctx, p.lissom, container.GetEnv(), options)
	if err != nil {
		return nil, fmt.Errorf("%w; options come from annotation %s", err, key)
	}
	if err := checkLibrary(p.folder, name); err != nil {
		return nil, err
	}
	adjustment := &api.ContainerAdjustment{}
	if err := mount(adjustment, container, p.folder, containerFolder); err != nil {
		return nil, err
	}
	if p.manager != "" {
		if err := p.addManager(adjustment, container, set); err != nil {
			p.log.With("container", about(pod, container)).Warn("runs without the manager", "reason", err.Error())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		// Another plugin may have set it. Both values apply, since ours includes the
		// other's. NRI would see a conflict and not create the container, so remove the old
		// value first.
		if isSet(container.GetEnv(), name) {
			adjustment.RemoveEnv(name)
		}
		adjustment.AddEnv(name, set[name])
	}
	return adjustment, nil
}

// addManager checks first whether the socket exists: a mount of a missing path would keep the
// container from starting. It mounts the folder, since a restarted manager creates a new socket.
func (p *plugin) addManager(adjustment *api.ContainerAdjustment, container *api.Container, set map[string]string) error {
	info, err := os.Stat(p.manager)
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is no socket", p.manager)
	}
	if err := mount(adjustment, container, filepath.Dir(p.manager), containerManager); err != nil {
		return err
	}
	set["LISSOM_MANAGER"] = containerManager + "/" + filepath.Base(p.manager)
	return nil
}

func mount(adjustment *api.ContainerAdjustment, container *api.Container, from, to string) error {
	for _, m := range container.GetMounts() {
		at := filepath.Clean(m.GetDestination())
		if at == to || at == "/" || strings.HasPrefix(at, to+"/") {
			return fmt.Errorf("the container has a mount of its own at %s", at)
		}
	}
	adjustment.AddMount(&api.Mount{
		Source:      from,
		Destination: to,
		Type:        "bind",
		// Not noexec: code is mapped from it.
		Options: []string{"bind", "rprivate", "ro", "nosuid", "nodev"},
	})
	return nil
}

func (p *plugin) PostCreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	p.note(pod, container)
	return nil
}

// UpdateContainer only reports the change: the runtime in the container follows its quota itself.
func (p *plugin) UpdateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container, resources *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	if isManaged(container) {
		p.status.resize(about(pod, container), container.GetId(), cpuLimit(resources))
		p.log.With("container", about(pod, container)).Info("is resized", "cpus", cpuLimit(resources))
	}
	return nil, nil
}

func (p *plugin) PostUpdateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	if isManaged(container) {
		p.log.With("container", about(pod, container)).Info("was resized", "cpus", cpuLimit(container.GetLinux().GetResources()))
	}
	return nil
}

func (p *plugin) RemoveContainer(_ context.Context, _ *api.PodSandbox, container *api.Container) error {
	p.status.forget(container.GetId())
	return nil
}

func (p *plugin) note(pod *api.PodSandbox, container *api.Container) {
	if isManaged(container) {
		p.status.note(about(pod, container), container.GetId(), cpuLimit(container.GetLinux().GetResources()))
	}
}

// isManaged reports whether the container was created under lissom, by this agent or an earlier
// one.
func isManaged(container *api.Container) bool {
	return slices.ContainsFunc(container.GetEnv(), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return name == "LD_PRELOAD" && slices.ContainsFunc(strings.Split(value, ":"), isOurs)
	})
}

func about(pod *api.PodSandbox, container *api.Container) containerName {
	return containerName{pod.GetNamespace(), pod.GetName(), container.GetName()}
}

// cpuLimit returns the quota in CPUs; 0 without a quota.
func cpuLimit(resources *api.LinuxResources) float64 {
	cpu := resources.GetCpu()
	quota, period := cpu.GetQuota().GetValue(), cpu.GetPeriod().GetValue()
	if quota <= 0 || period == 0 {
		return 0
	}
	return float64(quota) / float64(period)
}
