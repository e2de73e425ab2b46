// Package v1alpha1 holds the custom resource of the example Solution: the Website.
//
// Everything in the resource definition that a user meets (descriptions, defaults, limits, columns) is written here, in
// comments that controller-gen understands. After a change run `go generate ./...`; it rewrites
// archive/operator/deploy/crds/websites_crd.yaml and zz_generated.deepcopy.go.
//
// +kubebuilder:object:generate=true
// +groupName=example.solutionctl.io
package v1alpha1

// The archive wants names that end in _crd.yaml, which controller-gen cannot be told; hence the mv.
//
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object paths=. crd paths=. output:crd:dir=../../archive/operator/deploy/crds
//go:generate mv ../../archive/operator/deploy/crds/example.solutionctl.io_websites.yaml ../../archive/operator/deploy/crds/websites_crd.yaml
