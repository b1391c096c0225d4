module lissom.dev/kubernetes/agent

go 1.24.0

require github.com/containerd/nri v0.8.0
