package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/helm"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// HelmRelease names a release of Helm. What is empty is as it would be if Helm had installed the component: the name of its release,
// in the namespace that it lives in.
type HelmRelease struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

func (r HelmRelease) String() string { return r.Namespace + "/" + r.Name }

// ParseHelmRelease reads COMPONENT[=NAMESPACE/RELEASE].
func ParseHelmRelease(text string) (component string, r HelmRelease, err error) {
	component, whole, given := strings.Cut(text, "=")
	if !given && component != "" {
		return component, r, nil
	}
	r.Namespace, r.Name, _ = strings.Cut(whole, "/")
	if component == "" || r.Namespace == "" || r.Name == "" {
		return "", r, report.Errorf(report.Usage, "--adopt-helm %q is not COMPONENT[=NAMESPACE/RELEASE]", text)
	}
	return component, r, helm.CheckName(r.Name)
}

// Settings of a component that was adopted from Helm. They stay on its record: as long as the Secret of the Helm revision exists, the
// next run continues with it.
const (
	settingHelm    = "adoptedHelm" // NAMESPACE/RELEASE, the revision and the UID of its Secret
	settingRestart = "acceptRestart"
)

// adoption is a release of Helm that becomes that of a component.
type adoption struct {
	*helm.Release
	at        HelmRelease
	component string
	revisions []helm.Revision // the newest first
	restart   bool
}

// adoption reads the release of Helm that a component adopts, or has begun to adopt; nil where there is none. The settings of the component's
// own release record it.
func (t *target) adoption(ctx context.Context, c *schema.Component, release *engine.Release) (*adoption, error) {
	previous, err := t.previousSettings(ctx, release.Key)
	if err != nil {
		return nil, err
	}
	release.Settings = previous
	at, err := t.releaseToAdopt(ctx, c, previous)
	if err != nil || at.Name == "" {
		return nil, err
	}
	a, err := t.readHelm(ctx, at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("component %s: %w", c.Name, err)
	case a == nil && strings.HasPrefix(previous[settingHelm], at.String()+" "):
		return nil, nil // it was adopted
	case a == nil:
		return nil, report.Errorf(report.NotFound, "component %s: Helm has no release %s in namespace %s", c.Name, at.Name, at.Namespace).
			WithHint("'helm list --all-namespaces' shows those that there are: %s; only those are found that Helm keeps in Secrets", namedRelease(c.Name))
	}
	a.component, a.restart = c.Name, t.wanted.Restart || previous[settingRestart] == "true"
	release.Settings = map[string]string{settingHelm: a.setting()}
	if a.restart {
		release.Settings[settingRestart] = "true"
	}
	t.of.adopted = append(t.of.adopted, a)
	return a, nil
}

// releaseToAdopt returns the release that a component adopts: the one that is named for it, if not for another namespace, or else the one of an
// interrupted run. Without a name there is none.
func (t *target) releaseToAdopt(ctx context.Context, c *schema.Component, previous map[string]string) (HelmRelease, error) {
	at, named := t.wanted.Helm[c.Name]
	namespace := t.of.renderer.In(t.namespace, c).Settings.Namespace
	elsewhere := at.Namespace != namespace && slices.ContainsFunc(t.of.Namespaces, func(n metalk8s.Namespace) bool { return n.Name == at.Namespace })
	if !named || elsewhere {
		return t.AdoptionLeft(ctx, previous)
	}
	return HelmRelease{Namespace: cmp.Or(at.Namespace, namespace), Name: cmp.Or(at.Name, c.ReleaseName())}, nil
}

func namedRelease(component string) report.Remedy {
	return report.Accept("adopt-helm", component+"=NAMESPACE/RELEASE")
}

// deployed returns the revision that is adopted.
func (a *adoption) deployed() helm.Revision {
	return a.revisions[slices.IndexFunc(a.revisions, func(r helm.Revision) bool { return r.Number == a.Number })]
}

func (a *adoption) setting() string {
	return fmt.Sprintf("%s %d %s", a.at, a.Number, a.deployed().Secret.GetUID())
}

// AdoptionLeft returns the release that was adopted and that Helm still stores, by the settings of the component that adopted it.
func (p *Planner) AdoptionLeft(ctx context.Context, settings map[string]string) (at HelmRelease, err error) {
	words := strings.Fields(settings[settingHelm])
	if len(words) != 3 {
		return at, nil
	}
	at.Namespace, at.Name, _ = strings.Cut(words[0], "/")
	number, _ := strconv.Atoi(words[1])
	secret, err := p.Cluster.GetMetadata(ctx, cluster.SecretKind, at.Namespace, helm.SecretName(at.Name, number))
	if err != nil || secret == nil || string(secret.GetUID()) != words[2] {
		return HelmRelease{}, err
	}
	return at, nil
}

// readHelm reads the revision of a release that is deployed; nil where there is no such release.
func (p *Planner) readHelm(ctx context.Context, at HelmRelease) (*adoption, error) {
	if err := helm.CheckName(at.Name); err != nil {
		return nil, err
	}
	revisions, err := p.helmRevisions(ctx, at)
	if err != nil || len(revisions) == 0 {
		return nil, err
	}
	a, newest := &adoption{at: at, revisions: revisions}, revisions[0]
	if strings.HasPrefix(newest.Status, helm.StatusPending) {
		return nil, report.Errorf(report.Refused, "revision %d of release %s of Helm is %s: Helm is at work on it, or was ended there", newest.Number, at, newest.Status).
			WithHint("wait for Helm, or go back with it: helm rollback %s --namespace %s", at.Name, at.Namespace)
	}
	i := slices.IndexFunc(a.revisions, func(r helm.Revision) bool { return r.Status == helm.StatusDeployed })
	if i < 0 {
		return nil, report.Errorf(report.Refused, "release %s of Helm is not deployed: its revision %d is %s", at, newest.Number, newest.Status).
			WithHint("deploy it with Helm once more, or uninstall it: helm uninstall %s --namespace %s", at.Name, at.Namespace)
	}
	secret, err := p.Cluster.Get(ctx, cluster.SecretKind, at.Namespace, a.revisions[i].Secret.GetName())
	switch {
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, usedMeanwhile(at)
	}
	if a.Release, err = helm.Read(secret); err != nil {
		return nil, err
	}
	if a.Status != helm.StatusDeployed {
		return nil, report.Errorf(report.Corrupt, "Secret %s/%s has the label of a release that is deployed, which is %q", at.Namespace, secret.GetName(), a.Status)
	}
	return a, nil
}

// helmRevisions returns those that Helm stores of a release, the newest first.
func (p *Planner) helmRevisions(ctx context.Context, at HelmRelease) ([]helm.Revision, error) {
	secrets, err := cluster.Collect(p.Cluster.ListMetadata(ctx, cluster.SecretKind, at.Namespace, metav1.ListOptions{LabelSelector: helm.Selector(at.Name)}))
	return helm.List(at.Name, secrets), err
}

func usedMeanwhile(at HelmRelease) error {
	return report.Errorf(report.Conflict, "Helm was used on release %s meanwhile", at).WithHint("run the command again")
}

// has reports whether Helm has deployed an object, or made it as a hook.
func (a *adoption) has(object *unstructured.Unstructured) bool {
	return isListed(a.Objects, object) || isListed(a.Hooks, object)
}

// byHelm reports whether Helm has written a live object.
func byHelm(there *unstructured.Unstructured) bool {
	return slices.ContainsFunc(there.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == helm.FieldManager })
}

func isListed(list []schema.ObjectRef, object *unstructured.Unstructured) bool {
	ref := records.RefOf(object.GroupVersionKind(), object)
	return slices.ContainsFunc(list, func(listed schema.ObjectRef) bool { return helm.Same(listed, ref) })
}

// adopted renders a chart that Helm has deployed. The values that Helm has generated stay: where they cannot be recovered, the adoption is
// refused.
func (r Renderer) adopted(ctx context.Context, stored *render.ChartValues, release *engine.Release, a *adoption) (*render.ChartObjects, error) {
	rendered, live, err := r.RecoverChart(ctx, stored, release, func(there *unstructured.Unstructured) bool { return a.has(there) && byHelm(there) })
	if err != nil {
		return nil, err
	}
	other := engine.Release{Key: release.Key}
	if _, err = r.Chart(ctx, &render.ChartValues{Values: stored.Values}, true, &other); err != nil {
		return nil, err
	}
	lost := regenerated(withTasks(release), withTasks(&other), live, len(rendered.Renewed) > 0)
	if len(lost) == 0 {
		return rendered, nil
	}
	return nil, report.Errorf(report.Refused, "component %s: the chart generated %s for Helm, and these values cannot be recovered from the cluster", a.component, strings.Join(lost, ", ")).
		WithHint("set the existing values with %s, or accept that all generated values change: %s",
			report.Accept("values", "FILE"), report.Accept("rotate", a.component).About(lost...))
}

// regenerated names the texts that would get another generated value than the existing one: those that also differ from one rendering to the
// next. Renewed reports that certificates had to be made again.
func regenerated(objects, others []*unstructured.Unstructured, live map[schema.ObjectRef]*unstructured.Unstructured, renewed bool) (names []string) {
	again := map[schema.ObjectRef]map[string]string{}
	for _, other := range others {
		again[records.RefOf(other.GroupVersionKind(), other)] = render.Texts(other)
	}
	for _, object := range objects {
		ref := records.RefOf(object.GroupVersionKind(), object)
		there := live[ref]
		if there == nil {
			continue
		}
		has := render.Texts(there)
		for key, text := range render.Texts(object) {
			value, known := has[key]
			isRenewed := renewed && strings.HasPrefix(value, "-----BEGIN ")
			if known && value != text && text != again[ref][key] && !isRenewed {
				names = append(names, fmt.Sprintf("%s (%s)", ref, key))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// adopt makes a release adopt the objects that Helm has of it, and reports what stays behind.
func (t *target) adopt(ctx context.Context, a *adoption, release *engine.Release, rendered *render.ChartObjects) (err error) {
	release.Adopt = &engine.Adoption{Manager: helm.FieldManager, Restart: a.restart}
	all := withTasks(release)
	for _, object := range all {
		if a.has(object) {
			release.Adopt.Objects = append(release.Adopt.Objects, records.RefOf(object.GroupVersionKind(), object))
		}
	}
	if len(release.Adopt.Objects) == 0 {
		return report.Errorf(report.Refused, "component %s has nothing of what Helm has deployed as %s, chart %s", a.component, a.at, a.Chart).
			WithHint("name the release that it was installed as: %s", namedRelease(a.component))
	}
	if release.Found, err = t.leftByHooks(ctx, a, release); err != nil {
		return err
	}
	t.notice(fmt.Sprintf("component %s adopts release %s of Helm, revision %d, chart %s, with the values of that release", a.component, a.at, a.Number, a.Chart))
	if newest := a.revisions[0]; newest.Number > a.Number {
		t.notice(fmt.Sprintf("revision %d of release %s of Helm is %s, and what it has changed is not known: revision %d is the last that was deployed",
			newest.Number, a.at, newest.Status, a.Number))
	}
	if again := runAgain(release); len(again) > 0 {
		t.notice(fmt.Sprintf("adopting release %s of Helm is an upgrade to its hooks, which run again: %s", a.at, strings.Join(again, ", ")))
	}
	var left []string
	all = append(all, rendered.Definitions...)
	for _, listed := range a.Objects {
		if !slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return isListed([]schema.ObjectRef{listed}, o) }) {
			left = append(left, listed.String())
		}
	}
	if len(left) > 0 {
		t.notice(fmt.Sprintf("component %s does not have all of release %s of Helm; this stays where it is: %s", a.component, a.at, strings.Join(left, ", ")))
	}
	return nil
}

// runAgain names the Jobs and Pods of hooks that an adoption runs: those of an upgrade, as Helm would run them.
func runAgain(release *engine.Release) (names []string) {
	for _, task := range release.Tasks {
		kind := task.Object.GetKind()
		if name := kind + " " + task.Object.GetName(); (kind == "Job" || kind == "Pod") && slices.Contains(task.On, schema.OccasionUpgrade) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// leftByHooks finds what hooks of Helm have left that does not end, such as a Secret: it goes with the component.
func (p *Planner) leftByHooks(ctx context.Context, a *adoption, release *engine.Release) (found []schema.DeployedObject, err error) {
	for _, task := range release.Tasks {
		object := task.Object
		if kind := object.GetKind(); kind == "Job" || kind == "Pod" || !isListed(a.Hooks, object) {
			continue
		}
		there, err := p.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil {
			return nil, err
		}
		if there != nil && there.GetLabels()[schema.LabelRelease] == "" && byHelm(there) {
			found = append(found, engine.Found{Object: there}.Deployed())
		}
	}
	return found, nil
}

// takeFromHelm plans to delete what Helm stores of adopted releases, when everything is ready.
func (r *Run) takeFromHelm(adopted []*adoption) {
	for _, a := range adopted {
		for _, secret := range a.secrets() {
			r.Changes = append(r.Changes, schema.Change{
				Action: schema.ActionDelete, Object: records.RefOf(cluster.SecretKind, secret), Note: "what Helm knows of the release, when everything is ready",
			})
		}
	}
	if after := r.After; len(adopted) > 0 {
		r.After = func(ctx context.Context) error {
			if after != nil {
				if err := after(ctx); err != nil {
					return err
				}
			}
			for _, a := range adopted {
				if err := r.deleteHelmRelease(ctx, a); err != nil {
					return fmt.Errorf("what Helm knows of release %s: %w", a.at, err)
				}
			}
			return nil
		}
	}
}

// secrets returns those in which Helm stores the release. That by which the next run knows that there is something to delete is the last.
func (a *adoption) secrets() (list []*unstructured.Unstructured) {
	last := a.deployed().Secret
	for _, r := range a.revisions {
		if r.Secret != last {
			list = append(list, r.Secret)
		}
	}
	return append(list, last)
}

func (p *Planner) deleteHelmRelease(ctx context.Context, a *adoption) error {
	now, err := p.helmRevisions(ctx, a.at)
	if err != nil {
		return err
	}
	if len(now) > 0 && now[0].Number > a.revisions[0].Number {
		return usedMeanwhile(a.at)
	}
	for _, secret := range a.secrets() {
		secret.SetResourceVersion("") // Helm may have changed its status
		if err := p.Cluster.Delete(ctx, secret, cluster.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}
