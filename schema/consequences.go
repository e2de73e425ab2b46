package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Consequences are the effects of an operation, computed from its changes.
type Consequences struct {
	// Versions lists the Solutions, each with the version before and afterwards.
	Versions []VersionChange `json:"versions"`
	// Changed is how many objects exist and are changed, apart from records.
	Changed int `json:"changed"`
	// Programs lists the workloads whose pods start, stop or start again, in the order of the changes.
	Programs []ProgramChange `json:"programs"`
	// Permissions lists what programs are allowed to do in addition, one line each.
	Permissions []string `json:"permissions"`
	// Data lists the custom resources that were checked, or that lose their operator, by definition.
	Data []DataChange `json:"data"`
	// Namespaces are deleted with everything in them.
	Namespaces []DeletedNamespace `json:"namespaces,omitempty"`
	// Records is how many records of solutionctl are removed for good, by a purge.
	Records int `json:"records,omitempty"`
	// SafeDefinitions are CustomResourceDefinitions that change in ways which cannot affect stored objects.
	SafeDefinitions []string `json:"safeDefinitions"`
}

// DeletedNamespace is a namespace that is deleted, and the data in it.
type DeletedNamespace struct {
	Name string `json:"name"`
	// Volumes is how many volume claims it has, and Bytes the size of their volumes.
	Volumes int   `json:"volumes"`
	Bytes   int64 `json:"bytes"`
	// Applications is how many custom resources it has: they are exported first.
	Applications int `json:"applications"`
	// Others is how many objects outside of Solutions it has.
	Others int `json:"others"`
}

// String describes the deletion in one clause.
func (n DeletedNamespace) String() string {
	var with []string
	if n.Volumes > 0 {
		text := report.Count(n.Volumes, "volume")
		if n.Bytes > 0 {
			text += " (" + report.Bytes(n.Bytes) + ")"
		}
		with = append(with, text)
	}
	if n.Applications > 0 {
		with = append(with, report.Count(n.Applications, "application"))
	}
	if n.Others > 0 {
		with = append(with, report.Count(n.Others, "object")+" outside of Solutions")
	}
	text := "namespace " + n.Name + " is deleted"
	switch last := len(with) - 1; {
	case last == 0:
		text += " with " + with[0]
	case last > 0:
		text += " with " + strings.Join(with[:last], ", ") + " and " + with[last]
	}
	return text
}

// VersionChange is the version of a Solution before an operation and afterwards.
type VersionChange struct {
	Solution string `json:"solution"`
	// Namespaces change in this way together; absent for the part of a Solution that belongs to the whole cluster.
	Namespaces []string `json:"namespaces,omitempty"`
	// From is absent when the Solution is added, and To when it is removed.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// ProgramEffect is the effect on the pods of a workload.
type ProgramEffect string

// The effects.
const (
	ProgramStarts   ProgramEffect = "starts"
	ProgramRestarts ProgramEffect = "restarts" // its pods are replaced once
	ProgramStops    ProgramEffect = "stops"
	ProgramRuns     ProgramEffect = "runs"  // a Job runs to its end
	ProgramLater    ProgramEffect = "later" // its next pods are other ones; those that run stay
)

// ProgramChange is the effect of an operation on the pods of a workload.
type ProgramChange struct {
	Object ObjectRef     `json:"object"`
	Effect ProgramEffect `json:"effect"`
	// Image is true when a container gets another image.
	Image bool `json:"image,omitempty"`
	// Interrupted is true when the old pods end before new ones serve.
	Interrupted bool `json:"interrupted,omitempty"`
}

// DataOutcome is the effect on custom resources.
type DataOutcome string

// The outcomes.
const (
	DataChecked  DataOutcome = "checked"  // compared with the new definitions
	DataDeleted  DataOutcome = "deleted"  // exported and deleted
	DataOrphaned DataOutcome = "orphaned" // kept without their operator
)

// DataChange is the effect of an operation on the custom resources of one definition.
type DataChange struct {
	Definition string      `json:"definition"`
	Kind       string      `json:"kind"`
	Outcome    DataOutcome `json:"outcome"`
	// Objects is how many there are, Losing how many lose fields, and Invalid how many the new definition rejects. The
	// user has accepted both.
	Objects int `json:"objects"`
	Losing  int `json:"losing,omitempty"`
	Invalid int `json:"invalid,omitempty"`
}

// Effects describes the consequences of the operation, one clause each; none where they were not computed.
func (o *Operation) Effects() []string {
	c := o.Consequences
	if c == nil {
		return nil
	}
	programs := c.programEffects()
	if len(programs) == 0 && c.Changed > 0 {
		programs = append(programs, "no program restarts")
	}
	effects := append(c.deletions(), programs...)
	if n := len(c.Permissions); n > 0 {
		effects = append(effects, report.Count(n, "new permission"))
	}
	if n := len(o.Unapproved()); n > 0 {
		effects = append(effects, report.Count(n, "power")+" to approve")
	}
	return append(effects, c.dataEffects()...)
}

// deletions describes the namespaces and records that are deleted.
func (c *Consequences) deletions() (effects []string) {
	effects = Strings(c.Namespaces)
	if c.Records > 0 {
		effects = append(effects, report.Count(c.Records, "record")+" of solutionctl removed for good; nothing that runs changes")
	}
	return effects
}

// ConsequencesText describes the consequences of the operation in one sentence without a full stop; "" where they were not computed.
func (o *Operation) ConsequencesText() string {
	if o.Consequences == nil {
		return ""
	}
	head, effects := o.Consequences.VersionsText(), strings.Join(o.Effects(), "; ")
	if head == "" || effects == "" {
		return head + effects
	}
	return head + ": " + effects
}

// VersionsText describes the changes of versions; "" if there are none.
func (c *Consequences) VersionsText() string {
	return strings.Join(Strings(c.Versions), ", ")
}

// newRight begins the notice of a permission, which is among the consequences of a plan as well.
const newRight = "new right: "

// RightNotice returns the notice of a new permission.
func RightNotice(permission string) string { return newRight + permission }

// Remarks returns the notices without those that the consequences of a plan have.
func (o *Operation) Remarks() []string {
	if !o.Planned || o.Consequences == nil {
		return o.Notices
	}
	return slices.DeleteFunc(slices.Clone(o.Notices), func(notice string) bool {
		permission, isRight := strings.CutPrefix(notice, newRight)
		return isRight && slices.Contains(o.Consequences.Permissions, permission)
	})
}

// String describes the change in one clause.
func (v VersionChange) String() string {
	text, cluster := "", len(v.Namespaces) == 0
	switch {
	case v.From == v.To:
		text = v.Solution + " stays at " + v.To
	case v.From == "" && cluster:
		text = v.Solution + " " + v.To + " becomes active"
	case v.From == "":
		text = v.Solution + " " + v.To + " is added"
	case v.To == "" && cluster:
		text = v.Solution + " " + v.From + " is no longer active"
	case v.To == "":
		text = v.Solution + " " + v.From + " is removed"
	case cluster:
		text = "the active version of " + v.Solution + " goes from " + v.From + " to " + v.To
	default:
		text = v.Solution + " goes from " + v.From + " to " + v.To
	}
	if len(v.Namespaces) > 1 {
		text += fmt.Sprintf(" in %d namespaces", len(v.Namespaces))
	}
	return text
}

// programEffects describes what happens to workloads.
func (c *Consequences) programEffects() (effects []string) {
	add := func(n int, one, many string) {
		if n == 1 {
			effects = append(effects, one)
		} else if n > 1 {
			effects = append(effects, fmt.Sprintf(many, n))
		}
	}
	add(c.programs(ProgramRestarts, true), "new image of 1 program, one restart", "new image of %d programs, one restart each")
	add(c.programs(ProgramRestarts, false), "1 program restarts", "%d programs restart")
	interrupted := 0
	for _, p := range c.Programs {
		if p.Interrupted {
			interrupted++
		}
	}
	add(interrupted, "interruption of 1 program", "interruption of %d programs")
	add(c.programs(ProgramStarts), "1 program starts", "%d programs start")
	add(c.programs(ProgramStops), "1 program stops", "%d programs stop")
	add(c.programs(ProgramRuns), "1 Job runs", "%d Jobs run")
	add(c.programs(ProgramLater), "1 program changes at its next start", "%d programs change at their next start")
	return effects
}

// programs counts programs with an effect, and with an image only those whose image changes or does not.
func (c *Consequences) programs(effect ProgramEffect, image ...bool) (n int) {
	for _, p := range c.Programs {
		if p.Effect == effect && (len(image) == 0 || p.Image == image[0]) {
			n++
		}
	}
	return n
}

// dataEffects describes what happens to custom resources.
func (c *Consequences) dataEffects() (effects []string) {
	var checked, lost []string
	for _, d := range c.Data {
		switch d.Outcome {
		case DataDeleted:
			effects = append(effects, d.counted(d.Objects)+" deleted after an export")
		case DataOrphaned:
			effects = append(effects, d.counted(d.Objects)+" kept without an operator")
		case DataChecked:
			checked = append(checked, d.counted(d.Objects))
			if d.Losing > 0 {
				lost = append(lost, fmt.Sprintf("%d lose fields", d.Losing))
			}
			if d.Invalid > 0 {
				lost = append(lost, fmt.Sprintf("%d become invalid", d.Invalid))
			}
		}
	}
	if len(checked) > 0 {
		if len(lost) == 0 {
			lost = []string{"nothing is lost"}
		}
		effects = append(effects, "data of "+strings.Join(checked, ", ")+" checked: "+strings.Join(lost, ", "))
	}
	if n := len(c.SafeDefinitions); n > 0 {
		effects = append(effects, report.Count(n, "definition")+" changed without an effect on stored data")
	}
	return effects
}

// counted is a number of custom resources with the plural of the kind as its definition has it: 2 Policies.
func (d DataChange) counted(n int) string {
	if n == 1 {
		return "1 " + d.Kind
	}
	plural, _, _ := strings.Cut(d.Definition, ".")
	same := 0
	for same < min(len(plural), len(d.Kind)) && strings.EqualFold(plural[same:same+1], d.Kind[same:same+1]) {
		same++
	}
	return fmt.Sprintf("%d %s%s", n, d.Kind[:same], plural[same:])
}
