// Package scaffold makes the project of a Solution from existing sources: a Helm chart, Kubernetes manifests, a
// kustomization, the project of an operator, a compose file.
//
// [New] reads each [Source], detects its kind by its content, and makes a component of it. The result is a [Project]:
// files in memory, solution.yaml first, with every image that rendering finds, and remarks about omissions and changes,
// with reasons. The package writes nothing and fetches nothing.
//
// The scope of objects decides where their component is deployed. Objects that refer to no namespace are deployed in
// each environment, without their original namespace. Cluster-scoped objects, and those that refer to accounts and
// Services by their namespace, are deployed once, in a cluster component. CustomResourceDefinitions go into the
// directory of activation.
package scaffold
