// SPDX-License-Identifier: MIT

package chart

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var podMonitorKind = schema.GroupVersionKind{
	Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor",
}

// podMonitor has the fields of the Prometheus operator's type that the chart uses.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port        string `json:"port"`
			Interval    string `json:"interval"`
			Relabelings []struct {
				SourceLabels []string `json:"sourceLabels"`
				TargetLabel  string   `json:"targetLabel"`
			} `json:"relabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

func (m *podMonitor) DeepCopyObject() runtime.Object {
	copied := *m
	return &copied
}

func set(of map[string]string) labels.Set { return labels.Set(of) }
