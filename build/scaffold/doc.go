// Package scaffold makes the project of a Solution out of what developers have: a Helm chart, Kubernetes manifests, a kustomization, the
// project of an operator, a compose file.
//
// [New] reads each [Source], finds out by its content what it is, and makes a component of it. The result is a [Project]: files in
// memory, solution.yaml first, with every image that rendering finds, and remarks on what was left out or changed, and why. The package
// writes nothing and fetches nothing.
//
// Where an object belongs decides how its component lives. Objects that refer to no namespace live in each environment, without the
// namespace that they were written for. What belongs to the whole cluster, or refers to accounts and Services by their namespace, lives
// once, in a component of the cluster. CustomResourceDefinitions go where activation applies them from.
package scaffold
