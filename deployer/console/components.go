package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// components shows the components of a Solution in an environment, and their health.
func (c *Console) components(v *web.Visit) (*web.Answer, error) {
	s, err := c.watched(v, page.SectionEnvironments, nil)
	if web.IsVisitor(err) {
		return c.visibleComponents(v, err)
	}
	if err != nil {
		return nil, err
	}
	r := &deployer.Request{Environment: v.PathValue("environment"), Namespace: v.FormValue("namespace"), Solution: v.PathValue("solution")}
	v.Frame.Trail = []page.Link{{Label: page.Text("environments.title"), URL: "/environments"}, {Label: r.Environment, URL: page.URL("environments", r.Environment)}}
	namespace, deployment, there := deploymentIn(s.Status.Environments, r)
	if !there {
		return nil, report.Errorf(report.NotFound, "Solution %s is not in environment %s", r.Solution, r.Environment)
	}
	graph, err := v.Deployer(nil).Components(v.Context(), deployer.ComponentsOptions{Environment: r.Environment, Solution: r.Solution, Namespace: namespace})
	if err != nil {
		return nil, err
	}
	for _, one := range s.Status.Solutions {
		if one.Name == graph.Solution && one.Deployment != nil {
			graph.AddStatus(one.Deployment.Components)
		}
	}
	return &web.Answer{Document: graph, Content: &page.Components{
		Environment: r.Environment, Namespace: namespace, Graph: graph, Deployment: deployment,
		Actions: changes(v, s, &deployer.Request{Environment: r.Environment, Namespace: namespace, Solution: deployment.Solution}, deployment),
	}}, nil
}

// deploymentIn is the first one that a request is about, with its namespace.
func deploymentIn(environments []schema.EnvironmentStatus, r *deployer.Request) (namespace string, found schema.DeploymentStatus, there bool) {
	for _, e := range environments {
		for _, n := range e.Namespaces {
			for _, d := range n.Deployments {
				if e.Name == r.Environment && d.Solution == r.Solution && (r.Namespace == "" || n.Name == r.Namespace) {
					return n.Name, d, true
				}
			}
		}
	}
	return "", found, false
}

// Names of the parameters that select parts of a Solution. A browser does not send boxes that are not ticked, so the
// form also lists the boxes that it shows.
const (
	choiceProfile   = "profile"   // one for each that is chosen; an empty one for none at all
	choiceProfiles  = "profiles"  // boxes for profiles are shown
	choiceComponent = "component" // NAME or NAME=false, for each that was chosen by its name before; NAME=default takes that back
	choiceShown     = "shown"     // a component whose box was ticked when it was shown
	choiceTicked    = "ticked"    // a component whose box is ticked
)

// readChoice reads the selected parts of a Solution. before is the choice without changed boxes: only a box that was
// ticked or unticked overrides a component; others continue to follow profiles and dependencies.
func readChoice(form url.Values) (choice, before components.Choice, err error) {
	named := slices.DeleteFunc(slices.Clone(form[choiceComponent]), func(text string) bool {
		back := strings.TrimSuffix(text, "=false") + "=default"
		return text != back && slices.Contains(form[choiceComponent], back)
	})
	if before, err = components.ParseChoice(form[choiceProfile], named); err != nil {
		return choice, before, err
	}
	if form.Has(choiceProfiles) && len(before.Profiles) == 0 {
		before.Profiles = []string{""}
	}
	changed := components.Choice{Components: map[string]bool{}}
	for _, name := range slices.Concat(form[choiceShown], form[choiceTicked]) {
		if ticked := slices.Contains(form[choiceTicked], name); ticked != slices.Contains(form[choiceShown], name) {
			changed.Components[name] = ticked
		}
	}
	return before.With(changed), before, nil
}

// choose adds the boxes for profiles and components to the form of a plan. If the choice of the user is refused, they show the one before.
func (o *order) choose(v *web.Visit, form *page.Form) {
	for _, choice := range []components.Choice{o.Rendering.Choice, o.before, {}} {
		graph, err := v.Deployer(nil).Selection(v.Context(), deployer.SelectionOptions{
			ComponentsOptions: deployer.ComponentsOptions{Environment: o.Environment, Solution: o.Solution, Namespace: o.Namespace},
			Version:           o.Version, Choice: choice,
		})
		if err != nil {
			continue
		}
		_, named := choice.Texts()
		for _, text := range named {
			form.Action.Fields = append(form.Action.Fields, page.Hidden{Name: choiceComponent, Value: text})
		}
		// Cluster components are selected when the Solution is activated.
		graph.Components = slices.DeleteFunc(graph.Components, func(n schema.ComponentNode) bool {
			return (n.Scope == schema.ScopeCluster) != (o.Environment == "")
		})
		chooseProfiles(graph, form)
		o.chooseComponents(graph, form)
		return
	}
}

func chooseProfiles(graph *schema.ComponentGraph, form *page.Form) {
	group := page.Group{Legend: page.Text("choice.profiles"), Help: page.Text("choice.profiles.help")}
	for _, profile := range graph.Profiles {
		var names []string
		for _, n := range graph.Components {
			if slices.Contains(n.Profiles, profile) {
				names = append(names, n.Name)
			}
		}
		switch chosen := slices.Contains(graph.Chosen, profile); {
		case len(names) > 0:
			group.Checkboxes = append(group.Checkboxes, page.Checkbox{
				Name: choiceProfile, Value: profile, Label: profile, Explanation: strings.Join(names, ", "), Checked: chosen,
			})
		case chosen: // of components that are chosen elsewhere
			form.Action.Fields = append(form.Action.Fields, page.Hidden{Name: choiceProfile, Value: profile})
		}
	}
	if len(group.Checkboxes) > 0 {
		form.Action.Fields = append(form.Action.Fields, page.Hidden{Name: choiceProfiles, Value: "true"})
		form.Groups = append(form.Groups, group)
	}
}

func (o *order) chooseComponents(graph *schema.ComponentGraph, form *page.Form) {
	group, back := page.Group{Legend: page.Text("choice.components")}, page.Group{Legend: page.Text("choice.default"), Help: page.Text("choice.default.help")}
	for _, n := range graph.Components {
		fixed := n.Reason == schema.SelectedAlways
		if n.Selected && !fixed {
			form.Action.Fields = append(form.Action.Fields, page.Hidden{Name: choiceShown, Value: n.Name})
		}
		group.Checkboxes = append(group.Checkboxes, page.Checkbox{
			Name: choiceTicked, Value: n.Name, Label: n.Name, Explanation: page.AboutComponent(n), Checked: n.Selected, Fixed: fixed,
		})
		if n.Reason == schema.SelectedByName || n.Reason == schema.Deselected {
			back.Checkboxes = append(back.Checkboxes, page.Checkbox{Name: choiceComponent, Value: n.Name + "=default", Label: n.Name})
		}
	}
	if slices.ContainsFunc(group.Checkboxes, func(b page.Checkbox) bool { return !b.Fixed }) {
		form.Groups = append(form.Groups, group)
	}
	if len(back.Checkboxes) > 0 {
		form.Groups = append(form.Groups, back)
	}
}
