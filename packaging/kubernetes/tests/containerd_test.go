// SPDX-License-Identifier: MIT

package tests

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// daemon is a real containerd with folders and a socket of its own. The tests use it as the kubelet
// does.
type daemon struct {
	t       *testing.T
	folder  string
	command *exec.Cmd
	channel *grpc.ClientConn
	runtime cri.RuntimeServiceClient
	pods    int
	images  []string
}

// snapshotter copies files, so it works on any file system of the test's folder.
const snapshotter = "native"

// cgroup contains all pods.
const cgroup = "/lissom-kubernetes-test"

const configuration = `version = 3
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
  address = "%[1]s/containerd.sock"
[ttrpc]
  address = "%[1]s/containerd.sock.ttrpc"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "test.invalid/pause:1"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "%[2]s"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "%[1]s/nri/nri.sock"
  plugin_path = "%[1]s/no-plugins"
  plugin_config_path = "%[1]s/no-plugins"
`

// startDaemon builds containerd in the version of go.mod, starts it, and loads images with each
// kind of root file system.
func startDaemon(t *testing.T) *daemon {
	t.Helper()
	needRoot(t)
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("this machine has no runc (package runc)")
	}
	// Not t.TempDir: the path of a Unix socket must be short.
	folder, err := os.MkdirTemp("", "lissom-containerd-")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, folder: folder}
	bin := filepath.Join(folder, "bin")
	build := exec.Command("go", "build", "-o", bin+"/",
		"github.com/containerd/containerd/v2/cmd/containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("containerd cannot be built: %v\n%s", err, output)
	}
	config := fmt.Appendf(nil, configuration, folder, snapshotter)
	if err := os.WriteFile(filepath.Join(folder, "config.toml"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	t.Cleanup(func() {
		d.removePods()
		d.stop(syscall.SIGTERM)
		d.checkNothingRuns()
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(folder, "log"))
			t.Logf("containerd:\n%s", text)
		}
		os.RemoveAll(folder)
	})
	return d
}

func (d *daemon) start() {
	d.t.Helper()
	log, err := os.OpenFile(filepath.Join(d.folder, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	bin := filepath.Join(d.folder, "bin")
	d.command = exec.Command(filepath.Join(bin, "containerd"), "--config", filepath.Join(d.folder, "config.toml"))
	d.command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	d.command.Stdout, d.command.Stderr = log, log
	if err := d.command.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.channel, err = grpc.NewClient("unix://"+d.folder+"/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	d.runtime = cri.NewRuntimeServiceClient(d.channel)
	eventually(d.t, "containerd answers", func() bool {
		_, err := d.runtime.Version(context.Background(), &cri.VersionRequest{})
		return err == nil
	})
}

func (d *daemon) stop(signal syscall.Signal) {
	d.channel.Close()
	d.command.Process.Signal(signal)
	d.command.Wait()
}

// load imports an image of the root file system: one layer, no registry.
func (d *daemon) load(name, root string, command ...string) {
	d.t.Helper()
	client, err := containerd.New(d.folder + "/containerd.sock")
	if err != nil {
		d.t.Fatal(err)
	}
	defer client.Close()
	ctx := namespaces.WithNamespace(context.Background(), "k8s.io")
	images, err := client.Import(ctx, bytes.NewReader(archive(d.t, name, root, command)))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, image := range images {
		if err := containerd.NewImage(client, image).Unpack(ctx, snapshotter); err != nil {
			d.t.Fatal(err)
		}
	}
}

// archive returns an OCI image layout as a tar file.
func archive(t *testing.T, name, root string, command []string) []byte {
	t.Helper()
	var whole bytes.Buffer
	w := tar.NewWriter(&whole)
	add := func(path string, content []byte) {
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	blob := func(kind string, content []byte) map[string]any {
		digest := fmt.Sprintf("%x", sha256.Sum256(content))
		add("blobs/sha256/"+digest, content)
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(content)}
	}
	text := func(value any) []byte {
		content, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	layer := blob("layer.v1.tar", layerOf(t, root))
	config := blob("config.v1+json", text(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Cmd": command, "Env": []string{"PATH=/", "OF_THE_IMAGE=1"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{layer["digest"]}},
	}))
	manifest := blob("manifest.v1+json", text(map[string]any{"schemaVersion": 2,
		"mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []any{layer}}))
	manifest["annotations"] = map[string]string{"io.containerd.image.name": name}
	manifest["platform"] = map[string]string{"architecture": "amd64", "os": "linux"}
	add("index.json", text(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}}))
	add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return whole.Bytes()
}

func layerOf(t *testing.T, root string) []byte {
	t.Helper()
	var whole bytes.Buffer
	w := tar.NewWriter(&whole)
	if err := w.AddFS(os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return whole.Bytes()
}

// pod is a pod of one container in the host's network.
type pod struct {
	daemon    *daemon
	sandbox   string
	container string
	log       string
}

func (d *daemon) pod(image string, a asked, command ...string) *pod {
	d.t.Helper()
	config := &cri.ContainerConfig{
		Image:   &cri.ImageSpec{Image: "test.invalid/" + image + ":1"},
		Command: command,
		Linux: &cri.LinuxContainerConfig{
			Resources:       quota(a.cpus),
			SecurityContext: &cri.LinuxContainerSecurityContext{ReadonlyRootfs: true, NoNewPrivs: true},
		},
	}
	for _, entry := range a.environment {
		key, value, _ := strings.Cut(entry, "=")
		config.Envs = append(config.Envs, &cri.KeyValue{Key: key, Value: []byte(value)})
	}
	return d.podOf(a, config)
}

func (d *daemon) podOf(a asked, config *cri.ContainerConfig) *pod {
	d.t.Helper()
	d.pods++
	name := fmt.Sprintf("pod-%d", d.pods)
	logs := filepath.Join(d.folder, "logs", name)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		d.t.Fatal(err)
	}
	if a.namespace == "" {
		a.namespace = "default"
	}
	network := &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER}
	sandbox := &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Namespace: a.namespace, Uid: name},
		Annotations:  a.annotations,
		LogDirectory: logs,
		Linux:        &cri.LinuxPodSandboxConfig{CgroupParent: cgroup, SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: network}},
	}
	config.Metadata = &cri.ContainerMetadata{Name: "main"}
	config.Labels = map[string]string{"io.kubernetes.container.name": "main"}
	config.LogPath = "main.log"
	config.Linux.SecurityContext.NamespaceOptions = network
	config.Linux.SecurityContext.Seccomp = &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	made, err := d.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: sandbox})
	if err != nil {
		d.t.Fatalf("the pod was not made: %v", err)
	}
	p := &pod{daemon: d, sandbox: made.PodSandboxId, log: filepath.Join(logs, "main.log")}
	container, err := d.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: p.sandbox, Config: config, SandboxConfig: sandbox})
	if err != nil {
		d.t.Fatalf("the container was not created: %v", err)
	}
	p.container = container.ContainerId
	if _, err := d.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: p.container}); err != nil {
		d.t.Fatalf("the container was not started: %v", err)
	}
	return p
}

func quota(cpus float64) *cri.LinuxContainerResources {
	r := &cri.LinuxContainerResources{}
	if cpus > 0 {
		r.CpuPeriod, r.CpuQuota = 100_000, int64(cpus*100_000)
	}
	return r
}

// said returns the container's output so far, without the time stamps of its log.
func (p *pod) said() string {
	file, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(string(file)) {
		if parts := strings.SplitN(line, " ", 4); len(parts) == 4 {
			lines = append(lines, parts[3])
		}
	}
	return strings.Join(lines, "")
}

// await waits until the container has printed `want`.
func (p *pod) await(want string) {
	p.daemon.t.Helper()
	eventually(p.daemon.t, fmt.Sprintf("the container says %q", want), func() bool { return strings.Contains(p.said(), want) })
}

// showsAll waits for the end of /show, and returns its output.
func (p *pod) showsAll() string {
	p.daemon.t.Helper()
	p.awaitEnd()
	p.await("sum: 40000\n")
	return p.said()
}

func (p *pod) awaitEnd() {
	p.daemon.t.Helper()
	eventually(p.daemon.t, "the container ends", func() bool {
		answer, err := p.daemon.runtime.ContainerStatus(context.Background(), &cri.ContainerStatusRequest{ContainerId: p.container})
		if err != nil {
			p.daemon.t.Fatal(err)
		}
		if code := answer.Status.ExitCode; code != 0 {
			p.daemon.t.Fatalf("the container ended with %d: %s", code, p.said())
		}
		return answer.Status.State == cri.ContainerState_CONTAINER_EXITED
	})
}

func (p *pod) resize(cpus float64) {
	p.daemon.t.Helper()
	_, err := p.daemon.runtime.UpdateContainerResources(context.Background(),
		&cri.UpdateContainerResourcesRequest{ContainerId: p.container, Linux: quota(cpus)})
	if err != nil {
		p.daemon.t.Fatalf("the container was not resized: %v", err)
	}
}

func (p *pod) remove() {
	p.daemon.t.Helper()
	if _, err := p.daemon.runtime.RemovePodSandbox(context.Background(), &cri.RemovePodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		p.daemon.t.Error(err)
	}
}

// removePods removes all processes, mounts and cgroups: containerd would leave pods running when it
// exits.
func (d *daemon) removePods() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := d.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		d.t.Errorf("the pods cannot be removed: %v", err)
		return
	}
	for _, item := range list.Items {
		if _, err := d.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: item.Id}); err != nil {
			d.t.Error(err)
		}
		if _, err := d.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: item.Id}); err != nil {
			d.t.Error(err)
		}
	}
	for _, place := range []string{"/sys/fs/cgroup/*", "/sys/fs/cgroup"} {
		groups, _ := filepath.Glob(place + cgroup)
		for _, group := range groups {
			os.Remove(group)
		}
	}
}

// checkNothingRuns fails if processes remain: shims exit by themselves after their last container.
func (d *daemon) checkNothingRuns() {
	d.t.Helper()
	var left []string
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if left = d.processes(); len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			d.t.Errorf("the test has left processes: %s", strings.Join(left, "; "))
			return
		}
	}
}

// processes returns the processes of the daemon's programs and its containers.
func (d *daemon) processes() []string {
	var found []string
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range folders {
		program, _ := os.Readlink(process + "/exe")
		groups, _ := os.ReadFile(process + "/cgroup")
		if strings.HasPrefix(program, d.folder+"/") || strings.Contains(string(groups), cgroup) {
			arguments, _ := os.ReadFile(process + "/cmdline")
			found = append(found, filepath.Base(process)+" "+strings.ReplaceAll(string(arguments), "\x00", " "))
		}
	}
	return found
}

func (d *daemon) loadAll() {
	d.t.Helper()
	for kind, make := range rootKinds {
		root := d.t.TempDir()
		if missing := make(d.t, root); missing != "" {
			d.t.Logf("no image of kind %s: this machine has no %s", kind, missing)
			continue
		}
		d.images = append(d.images, kind)
		d.load("test.invalid/"+kind+":1", root, "/show")
		if kind == "static" {
			d.load("test.invalid/pause:1", root, "/show", "pause")
		}
	}
}

// TestContainerd tests everything but the kubelet: containerd, runc, images of three kinds, the
// agent, the library, a resize.
func TestContainerd(t *testing.T) {
	d := startDaemon(t)
	d.loadAll()
	folder := installed(t)
	agent := startAgent(t, "-socket", d.folder+"/nri/nri.sock", "-folder", folder, "-namespaces", "batch")
	agent.awaitConnection()
	name := current(t, folder)

	t.Run("not asked", func(t *testing.T) {
		if said := d.pod("glibc", asked{}, "/show").showsAll(); !strings.HasPrefix(said, "library: none\npreload: \n") {
			t.Errorf("%s", said)
		}
	})
	t.Run("asked", func(t *testing.T) {
		said := d.pod("glibc", optedIn(), "/show").showsAll()
		if !strings.HasPrefix(said, "library: /.lissom/lib/x86_64-linux-gnu/"+name+"\npreload: /.lissom/$LIB/"+name+"\n") {
			t.Errorf("%s", said)
		}
	})
	t.Run("asked by the namespace", func(t *testing.T) {
		if said := d.pod("glibc", asked{namespace: "batch"}, "/show").showsAll(); !strings.Contains(said, "library: /.lissom/") {
			t.Errorf("%s", said)
		}
	})
	for _, kind := range []string{"musl", "static", "old-glibc"} {
		t.Run(kind, func(t *testing.T) {
			if !slices.Contains(d.images, kind) {
				t.Skip("this machine has no such root file system")
			}
			want := "library: none\n"
			if kind == "old-glibc" {
				want = "library: /.lissom/lib/x86_64-linux-gnu/"
			}
			if said := d.pod(kind, optedIn(), "/show").showsAll(); !strings.HasPrefix(said, want) {
				t.Errorf("%s", said)
			}
		})
	}
	t.Run("resize", func(t *testing.T) {
		a := optedIn()
		a.cpus = 1
		p := d.pod("glibc", a, "/show", "watch")
		p.await("slots: 1\n")
		metric := fmt.Sprintf(`lissom_container_cpus{namespace="default",pod="pod-%d",container="main"} `, d.pods)
		if !agent.metric(metric + "1") {
			t.Error("the limit is not shown")
		}
		p.resize(2)
		p.await("slots: 2\n")
		if !agent.metric(metric + "2") {
			t.Error("the new limit is not shown")
		}
		agent.said("was resized", func(line map[string]any) bool { return of("main")(line) && line["cpus"] == 2.0 })
		p.resize(0.5)
		p.await("slots: 2\nslots: 1\n")
		p.remove()
		eventually(t, "the container is forgotten", func() bool { return !agent.metric(metric + "0.5") })
	})
	t.Run("malformed", func(t *testing.T) {
		a := optedIn()
		a.annotations["lissom.dev/options"] = "cpus=many"
		if said := d.pod("glibc", a, "/show").showsAll(); !strings.HasPrefix(said, "library: none\n") {
			t.Errorf("%s", said)
		}
	})
	t.Run("containerd started again", func(t *testing.T) {
		running := d.pod("glibc", optedIn(), "/show", "watch")
		running.await("library: /.lissom/")
		d.stop(syscall.SIGKILL)
		eventually(t, "the agent sees that it is gone", func() bool { return !agent.isConnected() })
		if code, body := agent.get("/readyz"); code != 503 || !strings.Contains(body, "not connected") {
			t.Errorf("/readyz says %d %q", code, body)
		}
		if code, _ := agent.get("/healthz"); code != 200 {
			t.Errorf("/healthz says %d", code)
		}
		d.start()
		agent.awaitConnection()
		if code, _ := agent.get("/readyz"); code != 200 {
			t.Errorf("/readyz says %d", code)
		}
		if got := agent.said("synchronized", nil)["under_lissom"]; got != 1.0 {
			t.Errorf("it found %v containers under lissom, want 1", got)
		}
		running.remove()
		if said := d.pod("glibc", optedIn(), "/show").showsAll(); !strings.HasPrefix(said, "library: /.lissom/") {
			t.Errorf("%s", said)
		}
	})
	t.Run("agent killed", func(t *testing.T) {
		running := d.pod("glibc", optedIn(), "/show", "watch")
		running.await("library: /.lissom/")
		agent.signal(syscall.SIGKILL)
		<-agent.ended
		if said := d.pod("glibc", optedIn(), "/show").showsAll(); !strings.HasPrefix(said, "library: none\n") {
			t.Errorf("%s", said)
		}
		second := startAgent(t, "-socket", d.folder+"/nri/nri.sock", "-folder", folder)
		second.awaitConnection()
		if got := second.said("synchronized", nil)["under_lissom"]; got != 1.0 {
			t.Errorf("it found %v containers under lissom, want 1", got)
		}
		if said := d.pod("glibc", optedIn(), "/show").showsAll(); !strings.HasPrefix(said, "library: /.lissom/") {
			t.Errorf("%s", said)
		}
	})
}
