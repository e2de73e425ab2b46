package loader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/rights"
)

// accountName is the ServiceAccount of runs, repairName that of repairs.
const (
	accountName = "solutionctl-loader"
	repairName  = "solutionctl-loader-repair"
)

// account returns a ServiceAccount with permissions: a role for each namespace, and one for the whole cluster.
func account(name string, permissions []cluster.Permission) []*unstructured.Unstructured {
	objects := []*unstructured.Unstructured{newObject(cluster.ServiceAccountKind, name, map[string]any{})}
	for _, object := range rights.Account(name, permissions) {
		object.SetLabels(ownLabels())
		objects = append(objects, object)
	}
	return objects
}

// LabelPart is a label with the name of its part, on all objects that the launcher creates beside a Job.
const LabelPart = "solutionctl.io/loader-part"

// keptKinds are the kinds of objects that belong to an account or to repairs.
var keptKinds = []kube.GroupVersionKind{
	cronJobKind,
	{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: rbacv1.GroupName, Version: "v1", Kind: "RoleBinding"},
	{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"},
	{Group: rbacv1.GroupName, Version: "v1", Kind: "Role"},
	cluster.ConfigMapKind,
	cluster.ServiceAccountKind,
}

// kept are the launcher's objects that a selector chooses among those of keptKinds, in their order.
func (l *Launcher) kept(ctx context.Context, selector string) ([]*unstructured.Unstructured, error) {
	found := make([][]*unstructured.Unstructured, len(keptKinds))
	group, ctx := errgroup.WithContext(ctx)
	for i, kind := range keptKinds {
		group.Go(func() (err error) {
			found[i], err = cluster.Collect(l.Deployer.Cluster.List(ctx, kind, "", metav1.ListOptions{LabelSelector: selector}))
			return err
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(slices.Concat(found...), func(o *unstructured.Unstructured) bool { return !isOwn(o) }), err
}

// isOwn reports whether an object with the label of a part was created by a launcher, or from what [Launcher.JobManifest] or
// [Launcher.CronJobManifest] returned. The label alone is also on every copy of an object.
func isOwn(o *unstructured.Unstructured) bool {
	ownNames := []string{accountName, repairName, repairsName, parametersName(repairRun)}
	isRole := strings.Contains(o.GetKind(), "Role")
	return engine.IsManaged(o) || slices.Contains(ownNames, o.GetName()) && (isRole || o.GetNamespace() == cluster.SystemNamespace)
}

// keep applies the objects of a part and deletes other objects that an earlier launcher created for this part, or for
// the parts in gone. They are not a release of the engine, because each record of a release is a Solution.
func (l *Launcher) keep(ctx context.Context, part string, objects []*unstructured.Unstructured, gone ...string) error {
	type place struct{ kind, namespace, name string }
	at := func(o *unstructured.Unstructured) place { return place{o.GetKind(), o.GetNamespace(), o.GetName()} }
	c, wanted, written := l.Deployer.Cluster, map[place]bool{}, map[place]string{}
	for _, object := range labelled(objects, LabelPart, part) {
		wanted[at(object)] = true
	}
	there, err := l.kept(ctx, fmt.Sprintf("%s in (%s)", LabelPart, strings.Join(append(gone, part), ", ")))
	if err != nil {
		return err
	}
	for _, object := range there {
		if written[at(object)] = object.GetAnnotations()[annotationContent]; wanted[at(object)] {
			continue
		}
		object.SetResourceVersion("") // it is deleted in any state
		if err = c.Delete(ctx, object, cluster.DeleteOptions{Propagation: metav1.DeletePropagationBackground}); err != nil {
			return err
		}
	}
	for _, object := range objects {
		content := contentOf(object)
		if written[at(object)] == content {
			continue
		}
		object.SetAnnotations(map[string]string{annotationContent: content})
		if _, err = c.Apply(ctx, object, cluster.WriteOptions{Force: true}); err != nil {
			return err
		}
	}
	return nil
}

// annotationContent is the digest of the content that the launcher wrote.
const annotationContent = "solutionctl.io/content"

// labelled adds a label to objects.
func labelled(objects []*unstructured.Unstructured, key, value string) []*unstructured.Unstructured {
	for _, object := range objects {
		cluster.SetLabel(object, key, value)
	}
	return objects
}

// drop takes a part away.
func (l *Launcher) drop(ctx context.Context, part string) error { return l.keep(ctx, part, nil) }

// LabelJob is on the account of a run, with the UID of its Job: the same work, begun again, is a run of the same name.
const LabelJob = "solutionctl.io/loader-job"

// dropOf takes the account of a run away, unless another run has it by now.
func (l *Launcher) dropOf(ctx context.Context, job *unstructured.Unstructured) error {
	const attempts = 3 // a controller may change an object, too
	selector := LabelPart + "=" + accountName + "," + LabelJob + "=" + string(job.GetUID())
	for range attempts {
		own, err := l.kept(ctx, selector)
		if err != nil {
			return err
		}
		changed := false
		for _, object := range own {
			err = l.Deployer.Cluster.Delete(ctx, object, cluster.DeleteOptions{})
			if errors.Is(err, cluster.ErrChanged) {
				changed = true
			} else if err != nil {
				return err
			}
		}
		if !changed {
			break
		}
	}
	return nil
}

// contentOf is the digest of an object without annotations.
func contentOf(object *unstructured.Unstructured) string {
	plain := object.DeepCopy()
	plain.SetAnnotations(nil)
	text, _ := plain.MarshalJSON() // it is of plain values
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
