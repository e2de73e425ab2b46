package schema

import (
	"slices"
	"strings"
)

// Installation lists the steps of `solutionctl deploy install`, done or planned.
type Installation struct {
	Environment string             `json:"environment"`
	Archives    []InstalledArchive `json:"archives"`
	Steps       []InstallStep      `json:"steps"`
	// Powers have to be approved by an administrator and were not approved before.
	Powers  []Power  `json:"powers"`
	Notices []string `json:"notices"`
	// Digest names exactly these steps. It is that of the plan, also after the steps were done.
	Digest string `json:"digest,omitempty"`
	// Addresses are the URLs of the user interfaces that were installed.
	Addresses []string `json:"addresses,omitempty"`
}

// InstalledArchive is an archive that is installed.
type InstalledArchive struct {
	File     string   `json:"file"`
	Solution string   `json:"solution"`
	Version  string   `json:"version"`
	SHA256   string   `json:"sha256"`
	Signers  []string `json:"signers"` // names of those whose signatures count
}

// Uninstallation lists the steps of `solutionctl deploy uninstall`, done or planned.
type Uninstallation struct {
	Environment string        `json:"environment"`
	Steps       []InstallStep `json:"steps"`
	Notices     []string      `json:"notices"`
	// Digest names exactly these steps. It is that of the plan, also after the steps were done.
	Digest string `json:"digest,omitempty"`
}

// InstallStep is a part of an installation, or of its inverse.
type InstallStep struct {
	// Step is trust, import, serve, register, configure, activate, create or deploy; of the inverse it is remove, delete, deactivate,
	// unimport, unconfigure, unregister, stop or untrust.
	Step  string    `json:"step"`
	Name  string    `json:"name"`
	Note  string    `json:"note,omitempty"`
	State StepState `json:"state"`
}

// StepState is the state of a step.
type StepState string

// The states of a step.
const (
	StepUnchanged StepState = "unchanged" // it was done before
	StepPlanned   StepState = "planned"
	StepDone      StepState = "done"
)

// ConsequencesText describes what the planned steps mean, in one sentence without a full stop; "" if nothing is planned.
func (i *Installation) ConsequencesText() string {
	planned := func(step string) bool {
		return slices.ContainsFunc(i.Steps, func(s InstallStep) bool { return s.Step == step && s.State == StepPlanned })
	}
	var clauses []string
	if planned("trust") {
		clauses = append(clauses, "this host trusts the key of the vendor")
	}
	if planned("serve") {
		clauses = append(clauses, "this host serves the images")
	}
	if planned("configure") {
		clauses = append(clauses, "this node fetches images from it")
	}
	if planned("deploy") {
		var running []string
		for _, a := range i.Archives {
			running = append(running, a.Solution+" "+a.Version)
		}
		verb := " runs"
		if len(running) > 1 {
			verb = " run"
		}
		clauses = append(clauses, strings.Join(running, " and ")+verb+" in environment "+i.Environment)
	}
	return strings.Join(clauses, "; ")
}
