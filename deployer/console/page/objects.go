package page

import (
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
)

// Objects is a deployed Solution down to its containers: /environments/NAME/objects/SOLUTION.
type Objects struct {
	Environment, Namespace string
	Deployment             schema.DeploymentStatus
	Tree                   *schema.ObjectTree
	Actions                []Action // logs, components
}

// maxPodsShown bounds the pods below one workload; those that are not ready come first.
const maxPodsShown = 50

// branch is an object in a tree, with the objects that belong to it.
type branch struct {
	Kind, Name string
	Health     string // its state: a key of the words of healths
	Reason     string
	Note       string // in few words, beside the name
	Folds      bool   // what is below it can be folded
	Open       bool
	More       int    // objects below it that are not shown
	Links      []Link // to its logs
	Children   []*branch
}

// IsWell reports whether the state of the object needs no word beside its icon.
func (b *branch) IsWell() bool {
	return b.Health == "used" || b.Health == string(schema.ObjectReady) || b.Health == string(schema.ObjectCompleted)
}

// objectGroup is a part of a Solution.
type objectGroup struct {
	ID, Name  string
	Namespace string
	Tree      []*branch
	Others    []string // objects that make no pods
}

// Groups are the parts of the Solution with their trees.
func (c *Objects) Groups() []objectGroup {
	var groups []objectGroup
	for i, g := range c.Tree.Groups {
		one := objectGroup{ID: "group-" + strconv.Itoa(i), Namespace: g.Namespace, Name: g.Component}
		switch {
		case g.Operated:
			one.Name = Text("objects.operated")
		case g.Component == "":
			one.Name = c.Tree.Solution
		}
		for _, o := range g.Objects {
			switch {
			case pods.IsWorkload(o.APIVersion, o.Kind), slices.Contains(shownKinds, o.Kind):
				one.Tree = append(one.Tree, c.object(o))
			default:
				one.Others = append(one.Others, o.Kind+" "+o.Name)
			}
		}
		groups = append(groups, one)
	}
	return groups
}

// shownKinds are the kinds that are shown beside workloads; others are folded.
var shownKinds = []string{"Service", "Ingress", "PersistentVolumeClaim"}

// object is an object of a record: the status of the Solution has its problems.
func (c *Objects) object(o schema.TreeObject) *branch {
	b := &branch{Kind: o.Kind, Name: o.Name, Health: "ready"}
	for _, reason := range c.Deployment.Reasons {
		if reason.Object.String() == o.String() {
			b.Health, b.Reason = string(c.Deployment.Health), strings.Trim(strings.TrimPrefix(reason.Text, o.String()), ":, ")
		}
	}
	ready := 0
	for _, p := range sortedPods(o.Pods) {
		if p.State == schema.ObjectReady || p.State == schema.ObjectCompleted {
			ready++
		} else if b.Health == "ready" {
			b.Health = string(p.State)
		}
		if len(b.Children) < maxPodsShown {
			b.Children = append(b.Children, c.pod(o.Namespace, p))
		}
	}
	if len(o.Pods) > 0 {
		b.Note = Count("objects.pods", len(o.Pods), ready)
		b.Folds, b.Open, b.More = true, ready < len(o.Pods), len(o.Pods)-len(b.Children)
	}
	return b
}

// sortedPods are pods, those that are not ready first.
func sortedPods(list []schema.TreePod) []schema.TreePod {
	rank := func(p schema.TreePod) int { return slices.Index(urgency, p.State) }
	return slices.SortedStableFunc(slices.Values(list), func(a, b schema.TreePod) int { return rank(a) - rank(b) })
}

var urgency = []schema.ObjectState{schema.ObjectFailed, schema.ObjectProgressing, schema.ObjectDeleting, schema.ObjectReady, schema.ObjectCompleted}

func (c *Objects) pod(namespace string, p schema.TreePod) *branch {
	b := &branch{Kind: Text("objects.pod"), Name: p.Name, Health: string(p.State), Reason: p.Reason}
	if p.Node != "" {
		b.Note = Text("objects.node", p.Node)
	}
	for _, one := range p.Containers {
		container := &branch{Kind: Text("objects.container"), Name: one.Name, Health: string(one.State), Reason: one.Reason}
		to := []string{"namespace", namespace, "pod", p.Name, "container", one.Name}
		container.Links = []Link{{Label: Text("objects.logs"), URL: LogsURL(c.Environment, c.Tree.Solution, to...)}}
		if one.Restarts > 0 {
			container.Note = Count("objects.restarts", one.Restarts)
			container.Links = append(container.Links, Link{Label: Text("objects.previous"), URL: LogsURL(c.Environment, c.Tree.Solution, append(to, "previous", "true")...)})
		}
		b.Children = append(b.Children, container)
	}
	for _, claim := range p.Claims {
		b.Children = append(b.Children, &branch{Kind: "PersistentVolumeClaim", Name: claim, Health: "used"})
	}
	return b
}

// Tree returns the objects of the instance, each below its owner.
func (a *App) Tree() []*branch {
	root := &branch{}
	path := []*branch{root} // the last branch of each depth
	for _, o := range a.App.Objects {
		depth := min(max(o.Depth, 1), len(path))
		b := &branch{Kind: o.Kind, Name: o.Name, Health: string(o.Health), Reason: o.Reason}
		path[depth-1].Children = append(path[depth-1].Children, b)
		path = append(path[:depth], b)
	}
	return root.Children
}

func (*Objects) name() string    { return "objects" }
func (c *Objects) title() string { return Text("objects.title", c.Deployment.Solution, c.Environment) }
