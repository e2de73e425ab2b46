// Package v1beta1 holds the custom resources of the example Solution: the Website, and the Banner that came with version
// 2.0.0.
//
// Against v1alpha1 the field spec.message of a Website has the name spec.text; package conversion changes one into the
// other. Objects are stored in this version.
//
// +kubebuilder:object:generate=true
// +groupName=example.solutionctl.io
package v1beta1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object paths=.
