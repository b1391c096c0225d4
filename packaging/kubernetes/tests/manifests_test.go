// SPDX-License-Identifier: MIT

package tests

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// objects returns the objects of `kubectl apply -k`, decoded to Kubernetes' own types: an unknown
// field is an error.
func objects(t *testing.T, folder string) map[string]any {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for _, resource := range made.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		found[resource.GetKind()] = decode(t, text)
	}
	return found
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := strict.Decode(text, nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

func TestManifests(t *testing.T) {
	found := objects(t, "../manifests/base")
	kinds := slices.Sorted(maps.Keys(found))
	if strings.Join(kinds, " ") != "DaemonSet Namespace ServiceAccount" {
		t.Fatalf("kinds: %v", kinds)
	}
	namespace := found["Namespace"].(*corev1.Namespace)
	account := found["ServiceAccount"].(*corev1.ServiceAccount)
	set := found["DaemonSet"].(*appsv1.DaemonSet)
	if set.Namespace != namespace.Name || account.Namespace != namespace.Name {
		t.Errorf("namespaces: %s, %s, %s", namespace.Name, account.Namespace, set.Namespace)
	}
	if set.Spec.Template.Spec.ServiceAccountName != account.Name {
		t.Error("the DaemonSet has another service account")
	}
	for key, value := range set.Spec.Selector.MatchLabels {
		if set.Spec.Template.Labels[key] != value {
			t.Errorf("the selector's %s is not among the pod's labels", key)
		}
	}
}

// TestPrivileges checks the minimal privileges of the agent. Additions require a change of this
// test.
func TestPrivileges(t *testing.T) {
	for folder, want := range map[string][]string{
		"../manifests/base":    {"/opt/lissom", "/var/run/nri"},
		"../manifests/manager": {"/opt/lissom", "/run/lissom", "/var/run/nri"},
	} {
		found := objects(t, folder)
		if account := found["ServiceAccount"].(*corev1.ServiceAccount); *account.AutomountServiceAccountToken {
			t.Error("the service account has a token")
		}
		pod := found["DaemonSet"].(*appsv1.DaemonSet).Spec.Template.Spec
		if pod.HostNetwork || pod.HostPID || pod.HostIPC || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod shares something with the host, or has a token", folder)
		}
		if pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Error("no seccomp profile")
		}
		var paths []string
		for _, volume := range pod.Volumes {
			if volume.HostPath == nil {
				t.Errorf("volume %s is not of the host", volume.Name)
				continue
			}
			paths = append(paths, volume.HostPath.Path)
		}
		slices.Sort(paths)
		if !slices.Equal(paths, want) {
			t.Errorf("%s: the host's folders are %v, want %v", folder, paths, want)
		}
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := container.SecurityContext
			if *s.Privileged || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Add) > 0 ||
				!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("container %s: %v", container.Name, s)
			}
			for _, mount := range container.VolumeMounts {
				if !mount.ReadOnly && (container.Name != "install" || mount.MountPath != "/opt/lissom") {
					t.Errorf("container %s may write to %s", container.Name, mount.MountPath)
				}
			}
		}
	}
}

// TestArguments checks that the agent knows the manifests' arguments, and that its folders are
// mounted.
func TestArguments(t *testing.T) {
	help, err := os.ReadFile("../agent/main.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`flag\.\w+Var\(&a\.\w+, "(\w+)"`).FindAllStringSubmatch(string(help), -1) {
		known[m[1]] = true
	}
	for _, folder := range []string{"../manifests/base", "../manifests/manager"} {
		pod := objects(t, folder)["DaemonSet"].(*appsv1.DaemonSet).Spec.Template.Spec
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, argument := range container.Args {
				name, _, _ := strings.Cut(strings.TrimLeft(argument, "-"), "=")
				if argument != "install" && !known[name] {
					t.Errorf("%s: the agent has no option %s", folder, argument)
				}
			}
		}
	}
}

// TestExample applies the guide's example.
// The pod of docs/guide/recipes-services.md is valid, and its container runs under lissom.
func TestRecipe(t *testing.T) {
	pod := decode(t, recipe(t, "kubernetes")).(*corev1.Pod)
	n := newNode(t)
	n.agent(installed(t))
	for _, container := range pod.Spec.Containers {
		made := n.create(asked{container: container.Name, annotations: pod.Annotations})
		if !made.isAdjusted() {
			t.Errorf("container %s runs natively", container.Name)
		}
	}
}

// recipe returns the code block that follows the marker of this name in a page of the guide.
func recipe(t *testing.T, name string) []byte {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guide/recipes-services.md")
	if err != nil {
		t.Fatal(err)
	}
	marker := regexp.QuoteMeta("<!-- recipe: " + name + " -->")
	block := regexp.MustCompile(marker + "\n```.*\n((?s:.*?))```\n").FindSubmatch(page)
	if block == nil {
		t.Fatalf("the page has no recipe %s", name)
	}
	return block[1]
}

func TestExample(t *testing.T) {
	text, err := os.ReadFile("../example/training.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pod := decode(t, text).(*corev1.Pod)
	for key := range pod.Annotations {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			t.Errorf("annotation %s: %v", key, problems)
		}
	}
	n := newNode(t)
	n.agent(installed(t))
	want := map[string]bool{"train": true, "logs": false}
	for _, container := range pod.Spec.Containers {
		a := asked{container: container.Name, annotations: pod.Annotations}
		for _, variable := range container.Env {
			a.environment = append(a.environment, variable.Name+"="+variable.Value)
		}
		made := n.create(a)
		if made.isAdjusted() != want[container.Name] {
			t.Errorf("container %s: adjusted: %v", container.Name, made.isAdjusted())
		}
		if container.Name == "train" {
			made.check(t, map[string]string{"LISSOM_SWITCH": "user", "LISSOM_VERBOSE": "1", "OMP_NUM_THREADS": "16"})
		}
	}
	guide, err := os.ReadFile("../../../docs/operate/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`lissom\.dev/[\w.]+`).FindAllString(string(guide), -1) {
		if problems := validation.IsQualifiedName(m); len(problems) > 0 {
			t.Errorf("the guide's annotation %s: %v", m, problems)
		}
	}
}
