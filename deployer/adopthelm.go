package deployer

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

// Settings of a component that was taken over from Helm. They stay on its record: as long as Helm's Secret of that revision is there, the
// next run goes on with it.
const (
	settingHelm    = "adoptedHelm" // NAMESPACE/RELEASE, the revision and the UID of its Secret
	settingRestart = "acceptRestart"
)

// takeover is a release of Helm that becomes that of a component.
type takeover struct {
	*helm.Release
	at        HelmRelease
	component string
	revisions []helm.Revision // the newest first
	restart   bool
}

// takeover reads the release of Helm that a component takes over, or has begun to take over; nil where there is none. The settings of the
// component's own release say so, and go on saying so.
func (d *Deployer) takeover(ctx context.Context, one *placement, namespace string, c *schema.Component, release *engine.Release) (*takeover, error) {
	previous, err := d.previousSettings(ctx, release.Key)
	if err != nil {
		return nil, err
	}
	release.Settings = previous
	at, err := d.toTakeOver(ctx, one, namespace, c, previous[settingHelm])
	if err != nil || at.Name == "" {
		return nil, err
	}
	t, err := d.readHelm(ctx, at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("component %s: %w", c.Name, err)
	case t == nil && strings.HasPrefix(previous[settingHelm], at.String()+" "):
		return nil, nil // it was taken over
	case t == nil:
		return nil, report.Errorf(report.NotFound, "component %s: Helm has no release %s in namespace %s", c.Name, at.Name, at.Namespace).
			WithHint("'helm list --all-namespaces' shows those that there are: %s; only those are found that Helm keeps in Secrets", namedRelease(c.Name))
	}
	t.component, t.restart = c.Name, one.Restart || previous[settingRestart] == "true"
	release.Settings = map[string]string{settingHelm: t.setting()}
	if t.restart {
		release.Settings[settingRestart] = "true"
	}
	one.taken = append(one.taken, t)
	return t, nil
}

// toTakeOver is the release that a component takes over: the one that is named for it, if not for another namespace, or else the one that an
// earlier run has not come to an end with. Without a name there is none.
func (d *Deployer) toTakeOver(ctx context.Context, one *placement, namespace string, c *schema.Component, begun string) (HelmRelease, error) {
	at, named := one.Helm[c.Name]
	elsewhere := at.Namespace != namespace && slices.ContainsFunc(one.namespaces, func(n metalk8s.Namespace) bool { return n.Name == at.Namespace })
	if !named || elsewhere {
		return d.unforgotten(ctx, begun)
	}
	return HelmRelease{Namespace: cmp.Or(at.Namespace, namespace), Name: cmp.Or(at.Name, c.ReleaseName())}, nil
}

func namedRelease(component string) report.Remedy {
	return report.Accept("adopt-helm", component+"=NAMESPACE/RELEASE")
}

// deployed is the revision that is taken over.
func (t *takeover) deployed() helm.Revision {
	return t.revisions[slices.IndexFunc(t.revisions, func(r helm.Revision) bool { return r.Number == t.Number })]
}

func (t *takeover) setting() string {
	return fmt.Sprintf("%s %d %s", t.at, t.Number, t.deployed().Secret.GetUID())
}

// unforgotten returns what was taken over and is still known to Helm, by the setting that says so.
func (d *Deployer) unforgotten(ctx context.Context, setting string) (at HelmRelease, err error) {
	words := strings.Fields(setting)
	if len(words) != 3 {
		return at, nil
	}
	at.Namespace, at.Name, _ = strings.Cut(words[0], "/")
	number, _ := strconv.Atoi(words[1])
	secret, err := d.Cluster.GetMetadata(ctx, cluster.SecretKind, at.Namespace, helm.SecretName(at.Name, number))
	if err != nil || secret == nil || string(secret.GetUID()) != words[2] {
		return HelmRelease{}, err
	}
	return at, nil
}

// readHelm reads the revision of a release that is deployed; nil where there is no such release.
func (d *Deployer) readHelm(ctx context.Context, at HelmRelease) (*takeover, error) {
	if err := helm.CheckName(at.Name); err != nil {
		return nil, err
	}
	revisions, err := d.helmRevisions(ctx, at)
	if err != nil || len(revisions) == 0 {
		return nil, err
	}
	t, newest := &takeover{at: at, revisions: revisions}, revisions[0]
	if strings.HasPrefix(newest.Status, helm.StatusPending) {
		return nil, report.Errorf(report.Refused, "revision %d of release %s of Helm is %s: Helm is at work on it, or was ended there", newest.Number, at, newest.Status).
			WithHint("wait for Helm, or go back with it: helm rollback %s --namespace %s", at.Name, at.Namespace)
	}
	i := slices.IndexFunc(t.revisions, func(r helm.Revision) bool { return r.Status == helm.StatusDeployed })
	if i < 0 {
		return nil, report.Errorf(report.Refused, "release %s of Helm is not deployed: its revision %d is %s", at, newest.Number, newest.Status).
			WithHint("deploy it with Helm once more, or uninstall it: helm uninstall %s --namespace %s", at.Name, at.Namespace)
	}
	secret, err := d.Cluster.Get(ctx, cluster.SecretKind, at.Namespace, t.revisions[i].Secret.GetName())
	switch {
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, usedMeanwhile(at)
	}
	if t.Release, err = helm.Read(secret); err != nil {
		return nil, err
	}
	if t.Status != helm.StatusDeployed {
		return nil, report.Errorf(report.Corrupt, "Secret %s/%s has the label of a release that is deployed, which is %q", at.Namespace, secret.GetName(), t.Status)
	}
	return t, nil
}

// helmRevisions are those that Helm keeps of a release, the newest first.
func (d *Deployer) helmRevisions(ctx context.Context, at HelmRelease) ([]helm.Revision, error) {
	var secrets []*unstructured.Unstructured
	for secret, err := range d.Cluster.ListMetadata(ctx, cluster.SecretKind, at.Namespace, metav1.ListOptions{LabelSelector: helm.Selector(at.Name)}) {
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return helm.List(at.Name, secrets), nil
}

func usedMeanwhile(at HelmRelease) error {
	return report.Errorf(report.Conflict, "Helm was used on release %s meanwhile", at).WithHint("run the command again")
}

// has tells whether an object is one that Helm has deployed, or made as a hook.
func (t *takeover) has(object *unstructured.Unstructured) bool {
	return isListed(t.Objects, object) || isListed(t.Hooks, object)
}

// byHelm tells whether Helm has written an object that is there.
func byHelm(there *unstructured.Unstructured) bool {
	return slices.ContainsFunc(there.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == helm.FieldManager })
}

func isListed(list []schema.ObjectRef, object *unstructured.Unstructured) bool {
	ref := records.RefOf(object.GroupVersionKind(), object)
	return slices.ContainsFunc(list, func(listed schema.ObjectRef) bool { return helm.Same(listed, ref) })
}

// renderTaken renders a chart that Helm has deployed. What Helm has drawn at random stays what it is: where that cannot be found out, the
// takeover is refused.
func (d *Deployer) renderTaken(ctx context.Context, one *placement, settings render.Settings, memory *render.Memory, release *engine.Release, t *takeover) (*render.ChartObjects, error) {
	rendered, live, err := d.renderRecalled(ctx, one.payload, settings, memory, release, one.allows(), func(there *unstructured.Unstructured) bool { return t.has(there) && byHelm(there) })
	if err != nil {
		return nil, err
	}
	drawn := engine.Release{Key: release.Key}
	if _, err = d.renderWith(ctx, one.payload, settings, &render.Memory{Values: memory.Values}, true, &drawn, one.allows()); err != nil {
		return nil, err
	}
	lost := redrawn(withTasks(release), withTasks(&drawn), live, len(rendered.Renewed) > 0)
	if len(lost) == 0 {
		return rendered, nil
	}
	return nil, report.Errorf(report.Refused, "component %s: the chart draws at random what Helm has put into %s, and what it has drawn cannot be found again", t.component, strings.Join(lost, ", ")).
		WithHint("give the chart what is there, with %s, or have it generated again with all that is random: %s",
			report.Accept("values", "FILE"), report.Accept("rotate", t.component).About(lost...))
}

// redrawn names what would get another random value than what is there: what differs from one rendering to another one as well. Renewed
// tells that certificates had to be made again.
func redrawn(objects, others []*unstructured.Unstructured, live map[schema.ObjectRef]*unstructured.Unstructured, renewed bool) (names []string) {
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

// hand makes a release take over what Helm has of it, and tells what stays behind.
func (d *Deployer) hand(ctx context.Context, t *takeover, release *engine.Release, rendered *render.ChartObjects) (notices []string, err error) {
	release.Adopt = &engine.Adoption{Manager: helm.FieldManager, Restart: t.restart}
	all := withTasks(release)
	for _, object := range all {
		if t.has(object) {
			release.Adopt.Objects = append(release.Adopt.Objects, records.RefOf(object.GroupVersionKind(), object))
		}
	}
	if len(release.Adopt.Objects) == 0 {
		return nil, report.Errorf(report.Refused, "component %s has nothing of what Helm has deployed as %s, chart %s", t.component, t.at, t.Chart).
			WithHint("name the release that it was installed as: %s", namedRelease(t.component))
	}
	if release.Found, err = d.leftByHooks(ctx, t, release); err != nil {
		return nil, err
	}
	notices = append(notices, fmt.Sprintf("component %s takes over release %s of Helm, revision %d, chart %s, with the values that Helm was given", t.component, t.at, t.Number, t.Chart))
	if newest := t.revisions[0]; newest.Number > t.Number {
		notices = append(notices, fmt.Sprintf("revision %d of release %s of Helm is %s, and what it has changed is not known: revision %d is the last that was deployed",
			newest.Number, t.at, newest.Status, t.Number))
	}
	if again := runAgain(release); len(again) > 0 {
		notices = append(notices, fmt.Sprintf("taking over release %s of Helm is an upgrade to its hooks, which run again: %s", t.at, strings.Join(again, ", ")))
	}
	var left []string
	all = append(all, rendered.Definitions...)
	for _, listed := range t.Objects {
		if !slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return isListed([]schema.ObjectRef{listed}, o) }) {
			left = append(left, listed.String())
		}
	}
	if len(left) > 0 {
		notices = append(notices, fmt.Sprintf("component %s does not have all of release %s of Helm; this stays where it is: %s", t.component, t.at, strings.Join(left, ", ")))
	}
	return notices, nil
}

// runAgain names the Jobs and Pods of hooks that a takeover runs: those of an upgrade, as Helm would run them.
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
func (d *Deployer) leftByHooks(ctx context.Context, t *takeover, release *engine.Release) (found []schema.DeployedObject, err error) {
	for _, task := range release.Tasks {
		object := task.Object
		if kind := object.GetKind(); kind == "Job" || kind == "Pod" || !isListed(t.Hooks, object) {
			continue
		}
		there, err := d.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil {
			return nil, err
		}
		if there != nil && there.GetLabels()[engine.LabelRelease] == "" && byHelm(there) {
			found = append(found, engine.Found{Object: there}.Deployed())
		}
	}
	return found, nil
}

// forget plans to delete what Helm knows of what was taken over, when everything is ready.
func (d *Deployer) forget(t *task, taken []*takeover) {
	for _, one := range taken {
		for _, secret := range one.secrets() {
			t.records = append(t.records, schema.Change{
				Action: schema.ActionDelete, Object: records.RefOf(cluster.SecretKind, secret), Note: "what Helm knows of the release, when everything is ready",
			})
		}
	}
	if after := t.after; len(taken) > 0 {
		t.after = func(ctx context.Context) error {
			if after != nil {
				if err := after(ctx); err != nil {
					return err
				}
			}
			for _, one := range taken {
				if err := d.forgetOne(ctx, one); err != nil {
					return fmt.Errorf("what Helm knows of release %s: %w", one.at, err)
				}
			}
			return nil
		}
	}
}

// secrets are those in which Helm keeps the release. That by which the next run knows that there is something to delete is the last.
func (t *takeover) secrets() (list []*unstructured.Unstructured) {
	last := t.deployed().Secret
	for _, r := range t.revisions {
		if r.Secret != last {
			list = append(list, r.Secret)
		}
	}
	return append(list, last)
}

func (d *Deployer) forgetOne(ctx context.Context, t *takeover) error {
	now, err := d.helmRevisions(ctx, t.at)
	if err != nil {
		return err
	}
	if len(now) > 0 && now[0].Number > t.revisions[0].Number {
		return usedMeanwhile(t.at)
	}
	for _, secret := range t.secrets() {
		secret.SetResourceVersion("") // Helm may have changed its status
		if err := d.Cluster.Delete(ctx, secret, cluster.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}
