// Package v1alpha1 holds the first form of the custom resource of the example Solution, the Website. Releases 1.0.0 and
// 1.1.0 serve it.
//
// Everything in the resource definition that a user meets (descriptions, defaults, limits, columns) is written here, in
// comments that controller-gen understands. After a change run `go generate ./...`.
//
// +kubebuilder:object:generate=true
// +groupName=example.solutionctl.io
package v1alpha1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object paths=.
