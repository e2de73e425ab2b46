// Package preflight checks whether what a plan deploys can run in the cluster: the version of Kubernetes, room for the pods, storage classes
// for the claims, and quotas.
//
// [LoadOf] computes from the objects of plans which pods and claims they add. [Examine] compares that with the cluster. It sends no request
// when nothing is added, else one for each list that it needs. It changes nothing and refuses nothing: what it cannot read is a check with the
// result "unknown".
//
// Pods are listed only for a plan that adds some: where others replace those that run, the nodes alone are compared. Those of a few nodes are
// listed first, and those of the whole cluster only if these nodes have no room, and if there are at most a thousand.
//
// The comparison is rough, as the scheduler decides by more than this. It fails only what cannot run as the cluster is now.
package preflight

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The kinds that are listed.
var (
	nodeKind         = kube.GroupVersionKind{Version: "v1", Kind: "Node"}
	quotaKind        = kube.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}
	volumeKind       = kube.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}
	storageClassKind = kube.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}
)

// The versions of Kubernetes that the tests run.
const oldest, newest = ">=1.30", "<1.37"

// Kubernetes checks a version of Kubernetes against those that this program was tested with.
func Kubernetes(version string) schema.PreflightCheck {
	c := schema.PreflightCheck{Name: schema.PreflightKubernetes, Result: schema.PreflightPass, Message: "Kubernetes " + version}
	switch {
	case !within(version, oldest):
		c.Result, c.Message, c.Hint = schema.PreflightFail, "Kubernetes "+version+" is older than 1.30", "upgrade the cluster"
	case !within(version, newest):
		c.Result, c.Hint = schema.PreflightWarning, "look for a newer solutionctl"
		c.Message = "Kubernetes " + version + " is newer than what this program was tested with, 1.36"
	}
	return c
}

func within(version, versions string) bool {
	r, err := schema.ParseRange(versions)
	if err != nil {
		panic(err) // it is one of the above
	}
	inside, err := r.ContainsKubernetes(version)
	return err == nil && inside
}

// Examine compares a load with the cluster. The error is that of a context that has ended.
func Examine(ctx context.Context, c *cluster.Cluster, load *Load) ([]schema.PreflightCheck, error) {
	var checks [3]*schema.PreflightCheck
	group, within := errgroup.WithContext(ctx)
	for i, check := range []func(context.Context, *cluster.Cluster, *Load) (*schema.PreflightCheck, error){storage, room, quota} {
		group.Go(func() error {
			found, err := check(within, c, load)
			if err != nil {
				name := []schema.PreflightName{schema.PreflightStorage, schema.PreflightRoom, schema.PreflightQuota}[i]
				found = &schema.PreflightCheck{Name: name, Result: schema.PreflightUnknown, Message: unknown(err)}
			}
			checks[i] = found
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var list []schema.PreflightCheck
	for _, check := range checks {
		if check != nil {
			list = append(list, *check)
		}
	}
	return list, ctx.Err()
}

// unknown describes why something could not be read.
func unknown(err error) string {
	if report.CodeOf(err) == report.Forbidden {
		return "not known: you do not have permission to look"
	}
	return "not known: " + err.Error()
}

// each returns the objects of a list as typed ones.
func each[T any](ctx context.Context, c *cluster.Cluster, kind kube.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for object, err := range c.List(ctx, kind, namespace, o) {
			typed := new(T)
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)
			}
			if !yield(typed, err) || err != nil {
				return
			}
		}
	}
}

// list reads all objects of a kind as typed ones.
func list[T any](ctx context.Context, c *cluster.Cluster, kind kube.GroupVersionKind, namespace string) ([]*T, error) {
	var found []*T
	for object, err := range each[T](ctx, c, kind, namespace, metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		found = append(found, object)
	}
	return found, nil
}

// storage checks that there are classes, or volumes, for the claims.
func storage(ctx context.Context, c *cluster.Cluster, load *Load) (*schema.PreflightCheck, error) {
	if len(load.Claims) == 0 {
		return nil, nil
	}
	var classes []*unstructured.Unstructured
	for class, err := range c.ListMetadata(ctx, storageClassKind, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		classes = append(classes, class)
	}
	missing := load.without(classes)
	var volumes []*corev1.PersistentVolume
	if len(missing) > 0 { // volumes that an administrator made may do instead
		var err error
		if volumes, err = list[corev1.PersistentVolume](ctx, c, volumeKind, ""); err != nil {
			return nil, err
		}
	}
	return judgeStorage(load, missing, volumes), nil
}

// The annotation of the class of claims that name none, and the one from before Kubernetes 1.6, which still counts.
var defaultClass = []string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}

// without returns the claims for which there is no class.
func (l *Load) without(classes []*unstructured.Unstructured) []Claim {
	return slices.DeleteFunc(slices.Clone(l.Claims), func(claim Claim) bool {
		return slices.ContainsFunc(classes, func(class *unstructured.Unstructured) bool {
			if claim.Class != nil {
				return class.GetName() == *claim.Class
			}
			return slices.ContainsFunc(defaultClass, func(name string) bool { return class.GetAnnotations()[name] == "true" })
		})
	})
}

// judgeStorage matches the claims without a class with volumes that are free.
func judgeStorage(load *Load, missing []Claim, volumes []*corev1.PersistentVolume) *schema.PreflightCheck {
	check := &schema.PreflightCheck{Name: schema.PreflightStorage, Result: schema.PreflightPass}
	var unmet []Claim
	for _, claim := range missing {
		for range claim.Count {
			i := slices.IndexFunc(volumes, func(v *corev1.PersistentVolume) bool {
				return v != nil && v.Status.Phase == corev1.VolumeAvailable && v.Spec.StorageClassName == claim.class() && v.Spec.Capacity.Storage().Cmp(claim.Size) >= 0
			})
			if i < 0 {
				unmet = append(unmet, claim)
				break
			}
			volumes[i] = nil
		}
	}
	if len(unmet) == 0 {
		check.Message = "storage for " + report.Count(load.claims(), "volume claim")
		return check
	}
	first := unmet[0]
	what := fmt.Sprintf("there is no StorageClass %s", first.class())
	switch {
	case first.Class == nil:
		what = "no StorageClass is the default one"
		check.Hint = "make one the default: kubectl annotate storageclass NAME " + defaultClass[0] + "=true"
	case first.class() == "":
		what = "it asks for a volume without a class"
		check.Hint = "create a PersistentVolume for it"
	default:
		check.Hint = "create the class, or give the Solution the name of another one"
	}
	check.Result = schema.PreflightFail
	check.Message = fmt.Sprintf("%s waits for a volume: %s, and no free volume fits", first.Owner, what)
	if more := len(unmet) - 1; more > 0 {
		check.Message += "; so does " + report.Count(more, "other claim")
	}
	return check
}

// quota checks that the quotas of the namespaces allow what is added.
func quota(ctx context.Context, c *cluster.Cluster, load *Load) (*schema.PreflightCheck, error) {
	needs := load.needs()
	if len(needs) == 0 {
		return nil, nil
	}
	var quotas []*corev1.ResourceQuota
	for _, namespace := range load.namespaces() {
		here, err := list[corev1.ResourceQuota](ctx, c, quotaKind, namespace)
		if err != nil {
			return nil, err
		}
		quotas = append(quotas, here...)
	}
	return judgeQuota(load, quotas), nil
}

// judgeQuota compares quotas with what is added. Quotas with scopes are left out: which pods they are for depends on more than requests.
func judgeQuota(load *Load, quotas []*corev1.ResourceQuota) *schema.PreflightCheck {
	var exceeded []string
	counted := 0
	needs := load.needs()
	for _, q := range quotas {
		if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue
		}
		counted++
		limits := q.Spec.Hard
		for _, name := range sortedNames(limits) {
			need, wanted := needs[q.Namespace][name]
			if !wanted {
				continue
			}
			hard, used := limits[name], q.Status.Used[name]
			total := used.DeepCopy()
			total.Add(need)
			if total.Cmp(hard) > 0 {
				exceeded = append(exceeded, fmt.Sprintf("ResourceQuota %s/%s allows %s %s, of which %s are used, and %s more are needed",
					q.Namespace, q.Name, hard.String(), name, used.String(), need.String()))
			}
		}
	}
	check := &schema.PreflightCheck{Name: schema.PreflightQuota, Result: schema.PreflightPass, Message: "no quota limits the namespace"}
	switch {
	case len(exceeded) > 0:
		check.Result, check.Message, check.Hint = schema.PreflightFail, strings.Join(exceeded, "; "), "raise the quota, or lower the requests with the values of the Solution"
		if load.Frees {
			check.Result = schema.PreflightWarning // what the plan stops may be enough
		}
	case counted > 0:
		check.Message = fmt.Sprintf("%s has room for what is added", report.Count(counted, "quota"))
	}
	return check
}
