// Package plan plans runs: what one run of a verb reads, judges, changes and reports.
//
// A [Planner] makes a [Run] with [Planner.Begin]. [Run.Do], or [Run.InNamespaces] for an environment, takes the locks, calls a function that
// plans, checks that the user has all permissions, and carries the plan out. That function first reads the catalogue with [Run.ReadCatalog]
// and then plans with one of the methods: [Run.Activate] and [Run.Deactivate] for the cluster, [Run.Place], [Run.Change], [Run.Ensure],
// [Run.RollBack] and [Run.Remove] for namespaces.
//
// A run keeps what it has read and what it is to change, so that its steps need no parameters for them. A [Placement] is a version that
// namespaces are to have: it is rendered for each of them, with its components, the saved options of an interrupted run, the values that
// charts generated before, and the releases of Helm that it adopts. [Run.Settle] compares the digest of the plan with the one that the user
// expects. A [Renderer] renders a version without a run.
package plan
