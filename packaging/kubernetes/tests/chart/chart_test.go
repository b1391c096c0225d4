// SPDX-License-Identifier: MIT

// Package chart tests the Helm chart. It is a module of its own, so that Helm's requirements do not
// change the versions that the tests of the agent use.
package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var helmLabels = []string{
	"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version",
	"helm.sh/chart",
}

const (
	kubernetes = "../.."
	folder     = kubernetes + "/chart"
	namespace  = "lissom-system"
)

// render does what `helm template --set-json values` does. It returns the objects by kind and name,
// and the notes.
func render(t *testing.T, values string) (map[string]runtime.Object, string, error) {
	t.Helper()
	chart, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "lissom", Namespace: namespace, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, given, release, nil)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	found, notes := map[string]runtime.Object{}, ""
	for path, text := range files {
		switch {
		case filepath.Base(path) == "NOTES.txt":
			notes = text
		case strings.TrimSpace(text) != "" && !strings.HasSuffix(path, ".tpl"):
			object := decode(t, text)
			found[name(t, object)] = object
		}
	}
	return found, notes, nil
}

// kustomized returns the objects of `kubectl apply -k`.
func kustomized(t *testing.T, overlay string) map[string]runtime.Object {
	t.Helper()
	builder := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	made, err := builder.Run(filesys.MakeFsOnDisk(), kubernetes+"/manifests/"+overlay)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]runtime.Object{}
	for _, resource := range made.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object := decode(t, string(text))
		found[name(t, object)] = object
	}
	return found
}

// decode returns an object of Kubernetes' own type: an unknown field is an error. The type of a
// PodMonitor is podMonitor.
func decode(t *testing.T, text string) runtime.Object {
	t.Helper()
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	types.AddKnownTypeWithName(podMonitorKind, &podMonitor{})
	strict := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := strict.Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

func name(t *testing.T, object runtime.Object) string {
	t.Helper()
	about, ok := object.(metav1.Object)
	if !ok {
		t.Fatalf("an object without a name: %v", object)
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + about.GetName()
}

func names(objects map[string]runtime.Object) string {
	var all []string
	for name := range objects {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// must returns what the chart renders with valid values.
func must(t *testing.T, values string) (map[string]runtime.Object, string) {
	t.Helper()
	found, notes, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return found, notes
}

func TestChartLint(t *testing.T) {
	for _, m := range lint.RunAll(folder, nil, namespace).Messages {
		// Helm recommends an icon.
		if m.Severity > support.InfoSev {
			t.Errorf("%s", m)
		}
	}
}

// TestChartIsKustomize checks that the chart and the manifests make the same objects. The chart
// leaves the namespace to `helm install --create-namespace`, and has Helm's labels in addition.
func TestChartIsKustomize(t *testing.T) {
	overlays := map[string]string{"": "base", "manager: {mode: service}": "manager"}
	for values, overlay := range overlays {
		found, _ := must(t, values)
		want := kustomized(t, overlay)
		delete(want, "Namespace "+namespace)
		if names(found) != names(want) {
			t.Fatalf("%s: %s, want %s", overlay, names(found), names(want))
		}
		for name, object := range found {
			about := object.(metav1.Object)
			labels := about.GetLabels()
			for _, label := range helmLabels {
				if labels[label] == "" {
					t.Errorf("%s has no label %s", name, label)
				}
				delete(labels, label)
			}
			if !reflect.DeepEqual(object, want[name]) {
				chart, _ := yaml.Marshal(object)
				manifests, _ := yaml.Marshal(want[name])
				t.Errorf("%s: %s: chart:\n%s\n%s", overlay, name, chart, manifests)
			}
		}
	}
}

// TestChartVersion checks that the image of this version is the default.
func TestChartVersion(t *testing.T) {
	cargo, err := os.ReadFile("../../../../Cargo.toml")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^version = "(.*)"$`).FindSubmatch(cargo)
	found, _ := must(t, "")
	image := template(found, "lissom-agent").Spec.Containers[0].Image
	if want := "registry.example/lissom-agent:" + string(version[1]); image != want {
		t.Errorf("the image is %s, not %s", image, want)
	}
}

// TestChartManager checks the privileges of the manager's DaemonSet, which are those of the systemd
// units, and that lissom knows the arguments.
func TestChartManager(t *testing.T) {
	help, err := os.ReadFile("../../../../tests/help/lissom-manager.txt")
	if err != nil {
		t.Fatal(err)
	}
	for mode, unit := range map[string]string{"pod": "manager", "observe": "metrics"} {
		found, _ := must(t, "manager: {mode: "+mode+"}")
		pod := template(found, "lissom-manager").Spec
		if *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod has a token", mode)
		}
		if pod.HostNetwork || pod.HostIPC || !pod.HostPID {
			t.Errorf("%s: what the pod shares with the host has changed", mode)
		}
		var mounts []string
		for _, volume := range pod.Volumes {
			mounts = append(mounts, volume.HostPath.Path)
		}
		want := map[string][]string{"pod": {"/run/lissom"}}
		if !slices.Equal(mounts, want[mode]) {
			t.Errorf("%s: it mounts %v", mode, mounts)
		}
		container := pod.Containers[0]
		s := container.SecurityContext
		if *s.Privileged || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s: %v", mode, s)
		}
		of := s.Capabilities
		wanted := capabilities(t, "lissom-"+unit+".service")
		if of.Drop[0] != "ALL" || !slices.Equal(of.Add, wanted) {
			t.Errorf("%s: capabilities %v, but the unit has %v", mode, of, wanted)
		}
		for _, argument := range container.Args {
			option, _, _ := strings.Cut(argument, "=")
			if !regexp.MustCompile(`(?m)^ .*` + option + `\b`).Match(help) {
				t.Errorf("%s: lissom manager has no option %s", mode, option)
			}
		}
		agent := template(found, "lissom-agent").Spec.Containers[0]
		connects := slices.Contains(agent.Args, "--manager=/run/lissom/manager.sock")
		if connects != (mode == "pod") {
			t.Errorf("%s: the agent's arguments are %v", mode, agent.Args)
		}
	}
}

// template returns the pod template of a DaemonSet.
func template(objects map[string]runtime.Object, name string) corev1.PodTemplateSpec {
	return objects["DaemonSet "+name].(*appsv1.DaemonSet).Spec.Template
}

// capabilities returns the capabilities of a systemd unit, in alphabetical order.
func capabilities(t *testing.T, unit string) []corev1.Capability {
	t.Helper()
	text, err := os.ReadFile("../../../" + unit)
	if err != nil {
		t.Fatal(err)
	}
	var found []corev1.Capability
	line := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`).FindSubmatch(text)
	for _, word := range strings.Fields(string(line[1])) {
		found = append(found, corev1.Capability(strings.TrimPrefix(word, "CAP_")))
	}
	slices.Sort(found)
	return found
}

func TestChartValues(t *testing.T) {
	found, notes := must(t, `
image: {repository: example.org/x, tag: v2, pullPolicy: Always}
imagePullSecrets: [{name: secret}]
labels: {team: hpc}
priorityClass: {create: true, value: 7}
agent: {namespaces: [a, b], args: [--debug], podAnnotations: {x: "y"}, tolerations: []}
manager: {mode: pod, args: [--pack=topology]}
podMonitor: {enabled: true, labels: {release: prometheus}}
networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {a: b}}}]}
`)
	want := "DaemonSet lissom-agent, DaemonSet lissom-manager, NetworkPolicy lissom, " +
		"PodMonitor lissom, PriorityClass lissom-agent, ServiceAccount lissom-agent"
	if names(found) != want {
		t.Fatalf("%s, want %s", names(found), want)
	}
	node := template(found, "lissom-agent")
	agent := node.Spec.Containers[0]
	want = "--manager=/run/lissom/manager.sock --debug --namespaces=a,b"
	if got := strings.Join(agent.Args, " "); got != want {
		t.Errorf("the agent's arguments are %s, want %s", got, want)
	}
	if agent.Image != "example.org/x:v2" || agent.ImagePullPolicy != "Always" {
		t.Errorf("%v", agent)
	}
	if node.Annotations["x"] != "y" || node.Spec.ImagePullSecrets[0].Name != "secret" {
		t.Errorf("%v", node)
	}
	if len(node.Spec.Tolerations) != 0 || node.Spec.PriorityClassName != "lissom-agent" {
		t.Errorf("%v", node.Spec)
	}
	class := found["PriorityClass lissom-agent"].(*schedulingv1.PriorityClass)
	if class.Value != 7 || class.Labels["team"] != "hpc" {
		t.Errorf("%v", class)
	}
	manager := template(found, "lissom-manager")
	if !slices.Contains(manager.Spec.Containers[0].Args, "--pack=topology") {
		t.Errorf("the manager's arguments are %v", manager.Spec.Containers[0].Args)
	}
	policy := found["NetworkPolicy lissom"].(*netv1.NetworkPolicy).Spec
	monitor := found["PodMonitor lissom"].(*podMonitor)
	for _, selector := range []metav1.LabelSelector{policy.PodSelector, monitor.Spec.Selector} {
		s, err := metav1.LabelSelectorAsSelector(&selector)
		for _, labels := range []map[string]string{node.Labels, manager.Labels} {
			if err != nil || !s.Matches(set(labels)) {
				t.Errorf("%v selects no pods with %v: %v", selector, labels, err)
			}
		}
	}
	if len(policy.Egress) != 0 || len(policy.PolicyTypes) != 2 {
		t.Errorf("%v", policy)
	}
	rule := policy.Ingress[0]
	if rule.From[0].NamespaceSelector == nil {
		t.Errorf("%v", rule)
	}
	for _, pod := range []corev1.PodSpec{node.Spec, manager.Spec} {
		port := pod.Containers[0].Ports[0].Name
		if port != monitor.Spec.Endpoints[0].Port || port != rule.Ports[0].Port.StrVal {
			t.Errorf("the port is %s", port)
		}
	}
	if monitor.Labels["release"] != "prometheus" {
		t.Errorf("%v", monitor)
	}
	for _, part := range []string{"run under lissom: a, b.", "port 9754"} {
		if !strings.Contains(notes, part) {
			t.Errorf("%s is missing: %s", part, notes)
		}
	}
}

func TestChartSchema(t *testing.T) {
	for _, values := range []string{
		"manager: {mode: always}",
		"image: {tag: 1}",
		"image: {repository: ''}",
		"agent: {namespaces: 'a,b'}",
		"agent: {namespaces: [A]}",
		"agent: {arguments: []}",
		"priorityClass: {value: 2000000000}",
		"podMonitor: {interval: often}",
		"networkPolicies: {}",
	} {
		if _, _, err := render(t, values); err == nil {
			t.Errorf("these values are accepted: %s", values)
		}
	}
}
