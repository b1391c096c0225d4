module lissom.dev/kubernetes/tests

go 1.24.0
