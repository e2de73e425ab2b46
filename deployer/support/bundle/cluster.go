package bundle

import (
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// cluster collects the data of the cluster.
func (c *collector) cluster() {
	var err error
	if c.document.Kubernetes, err = c.Deployer.Cluster.Version(c.ctx); err != nil {
		c.missing("everything in the cluster: %v", err)
		return
	}
	c.namespaces = []string{cluster.SystemNamespace, metalk8s.SolutionsNamespace}
	c.catalog()
	c.status()
	c.releases()
	slices.Sort(c.namespaces)
	c.namespaces = slices.Compact(c.namespaces)
	c.nodes()
	c.definitions()
	c.loader()
	for _, namespace := range c.namespaces {
		c.workloads(namespace)
		c.pods(namespace)
		c.events(namespace)
		c.stores(namespace)
	}
}

// objects lists the objects of a kind, at most maxItems of them. A failed list is recorded as missing.
func (c *collector) objects(kind kube.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		count := 0
		for object, err := range c.Deployer.Cluster.List(c.ctx, kind, namespace, o) {
			if err != nil {
				c.missing("%v", err)
				return
			}
			if count++; count > maxItems {
				c.missing("more than %d objects of kind %s in namespace %q", maxItems, kind.Kind, namespace)
				return
			}
			if !yield(object) {
				return
			}
		}
	}
}

func (c *collector) catalog() {
	catalog, err := c.Deployer.Records.Catalog(c.ctx)
	if err != nil {
		c.missing("what was imported: %v", err)
		return
	}
	for _, i := range catalog.Imports() {
		c.namespaces = append(c.namespaces, render.SystemNamespace(i.Name))
		c.document.Imports = append(c.document.Imports, schema.SupportImport{
			ID: i.ID(), ImportedAt: i.ImportedAt, ImportedBy: i.ImportedBy, SHA256: i.Archive.SHA256, Size: i.Archive.Size, Payload: i.Payload,
		})
	}
}

// status copies the requested and deployed versions and their health, but not the reasons: they quote fields and
// programs.
func (c *collector) status() {
	environments, err := (&metalk8s.Documents{Cluster: c.Deployer.Cluster}).Environments(c.ctx)
	if err != nil {
		c.missing("environments: %v", err)
		return
	}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			versions := map[string]string{}
			for solution, wanted := range n.Versions {
				versions[name(solution)] = version(wanted)
			}
			c.namespaces = append(c.namespaces, n.Name)
			c.document.Environments = append(c.document.Environments, schema.SupportEnvironment{
				Name: e.Name, Namespace: n.Name, Terminating: n.Terminating, Versions: versions,
			})
		}
	}
	status, err := c.Deployer.Survey.Status(c.ctx, survey.StatusOptions{})
	if err != nil {
		c.missing("how deployments are: %v", err)
		return
	}
	for d := range status.Deployments() {
		c.document.Deployments = append(c.document.Deployments, schema.SupportDeployment{
			Namespace: d.Namespace, Solution: name(d.Solution), Wanted: version(d.Wanted), Version: d.Version, Health: d.Health, Objects: d.Objects, Ready: d.Ready,
		})
	}
}

// releases copies the records without options and rendered objects.
func (c *collector) releases() {
	states, err := (&record.Store{Cluster: c.Deployer.Cluster, Tool: c.Tool}).States(c.ctx)
	if err != nil {
		c.missing("%v", err)
		return
	}
	for _, s := range states {
		if s.Damage != nil {
			c.missing("%v", s.Damage)
			continue
		}
		release := schema.SupportRelease{Namespace: s.Namespace, Solution: s.Name, Component: s.Component, Revisions: []schema.SupportRevision{}}
		for _, r := range s.Revisions() {
			release.Revisions = append(release.Revisions, revision(r))
		}
		c.document.Releases = append(c.document.Releases, release)
	}
}

func revision(r *schema.DeploymentRevision) schema.SupportRevision {
	taken := schema.SupportRevision{
		Number: r.Number, Operation: r.Operation, Version: r.Version, Outcome: r.Outcome, User: r.User, Tool: r.Tool,
		Started: r.Started, Finished: r.Finished, Content: r.Content, Objects: []schema.SupportObject{},
	}
	for _, object := range r.Objects[:min(len(r.Objects), maxItems)] {
		taken.Objects = append(taken.Objects, schema.SupportObject{
			Object: object.String(), UID: object.UID, Hash: object.Hash, Leaving: object.Leaving, Kept: object.Kept,
		})
	}
	return taken
}
