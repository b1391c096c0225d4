// SPDX-License-Identifier: MIT

package tests

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestDaemonSet runs the agent in a container of a real containerd, with only the permissions of
// the DaemonSet.
func TestDaemonSet(t *testing.T) {
	d := startDaemon(t)
	d.loadAll()
	image := t.TempDir()
	copyFile(t, agentBinary, filepath.Join(image, "usr/bin/lissom-agent"))
	copyFile(t, lissomBinary(t), filepath.Join(image, "usr/bin/lissom"))
	withLibraries(t, image, "/usr/bin/lissom")
	d.load("test.invalid/lissom-agent:1", image, "/usr/bin/lissom-agent")

	// Folders of this test instead of a node's.
	folders := map[string]string{"/opt/lissom": filepath.Join(d.folder, "opt"), "/var/run/nri": filepath.Join(d.folder, "nri")}
	node := []string{"-folder", folders["/opt/lissom"], "-socket", filepath.Join(folders["/var/run/nri"], "nri.sock"), "-listen", "127.0.0.1:0"}
	spec := objects(t, "../manifests/base")["DaemonSet"].(*appsv1.DaemonSet).Spec.Template.Spec
	run := func(container corev1.Container) *pod {
		return d.podOf(asked{}, containerOf(t, &spec, container, folders, node))
	}
	first := run(spec.InitContainers[0])
	first.awaitEnd()
	first.await(`"msg":"installed"`)
	agent := run(spec.Containers[0])
	agent.await(`"msg":"synchronized"`)
	if said := d.pod("glibc", optedIn(), "/show").showsAll(); !strings.HasPrefix(said, "library: /.lissom/") {
		t.Errorf("%s", said)
	}
	if said := agent.said(); !strings.Contains(said, `"msg":"runs under lissom"`) {
		t.Errorf("the agent says: %s", said)
	}
}

// containerOf returns the container that the kubelet would make of a container of the pod.
func containerOf(t *testing.T, spec *corev1.PodSpec, container corev1.Container, folders map[string]string, node []string) *cri.ContainerConfig {
	t.Helper()
	s := container.SecurityContext
	config := &cri.ContainerConfig{
		Image: &cri.ImageSpec{Image: "test.invalid/lissom-agent:1"},
		Args:  slices.Concat([]string{"/usr/bin/lissom-agent"}, node, container.Args),
		Linux: &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{
			Privileged:     *s.Privileged,
			ReadonlyRootfs: *s.ReadOnlyRootFilesystem,
			NoNewPrivs:     !*s.AllowPrivilegeEscalation,
			RunAsUser:      &cri.Int64Value{Value: *spec.SecurityContext.RunAsUser},
			RunAsGroup:     &cri.Int64Value{Value: *spec.SecurityContext.RunAsGroup},
			Capabilities:   &cri.Capability{},
		}},
	}
	for _, capability := range s.Capabilities.Drop {
		config.Linux.SecurityContext.Capabilities.DropCapabilities = append(config.Linux.SecurityContext.Capabilities.DropCapabilities, string(capability))
	}
	for _, m := range container.VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if m.MountPath != spec.Volumes[i].HostPath.Path {
			t.Errorf("%s is mounted at %s: the agent and the host have to call it by one name", spec.Volumes[i].HostPath.Path, m.MountPath)
		}
		folder := folders[m.MountPath]
		if folder == "" {
			t.Fatalf("the test has no folder for %s", m.MountPath)
		}
		mustMakeFolder(t, folder)
		config.Mounts = append(config.Mounts, &cri.Mount{HostPath: folder, ContainerPath: folder, Readonly: m.ReadOnly})
	}
	return config
}
