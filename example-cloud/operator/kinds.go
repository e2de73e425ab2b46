package main

import "slices"

// kind is a kind of custom resources: what is run for each, and which others are made for it before, one after the other.
type kind struct {
	name     string
	version  string // v1alpha1, unless a release has moved the kind on
	resource string
	children []string
	service  string // that cloud-service is started as; "" for what is nothing but its children
	needs    []string
}

// kinds are all kinds, owners first. Children are ready before the program that needs them is started: pods get addresses only of Services
// that existed when they started.
var kinds = []kind{
	{name: "Cloud", resource: "clouds", children: []string{"Identity", "Network", "Compute"}},
	{name: "Identity", resource: "identities", service: "identity"},
	{name: "Network", version: networkVersion, resource: "networks", service: "network"},
	{name: "Compute", resource: "computes", children: []string{"Conductor", "Scheduler"}, service: "compute", needs: []string{"identity", "scheduler"}},
	{name: "Conductor", resource: "conductors", service: "conductor", needs: []string{"network"}},
	{name: "Scheduler", resource: "schedulers", service: "scheduler", needs: []string{"conductor"}},
}

// operators are the operators that may be there besides the one that looks after whatever no other does, by the name of their
// Deployments.
var operators = map[string][]string{
	"identity-operator":  {"Identity"},
	"network-operator":   {"Network"},
	"compute-operator":   {"Compute", "Conductor", "Scheduler"},
	"api-operator":       {"Compute"},
	"conductor-operator": {"Conductor"},
	"scheduler-operator": {"Scheduler"},
}

func kindOf(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// duties are the kinds of an operator: all of them, unless it is one of those that have few.
func duties(operator string) []kind {
	names, ok := operators[operator]
	if !ok {
		return kinds
	}
	list := make([]kind, len(names))
	for i, name := range names {
		list[i] = kindOf(name)
	}
	return list
}

// others are the operators that a kind is left to, where they are.
func others(operator, kind string) (names []string) {
	if _, one := operators[operator]; one {
		return nil
	}
	for name, has := range operators {
		if slices.Contains(has, kind) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
