//go:build linux

package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/loader"
)

var (
	podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	jobResource = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// loaderKinds are the kinds that the loader leaves beside its Jobs.
var loaderKinds = []schema.GroupVersionResource{
	{Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Version: "v1", Resource: "serviceaccounts"},
}

// loaderAccount is as whom the pod of a run acts.
const loaderAccount = "system:serviceaccount:" + systemNamespace + ":solutionctl-loader"

// kubelet does what the kubelet of a node does with the pods of the loader, until it is stopped: it runs the program, with the
// account of the pod, and reports how that ended. No node takes these pods, so that no kubelet reports that they have run.
func (l *Lane) kubelet(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		running := map[types.UID]context.CancelFunc{}
		for {
			there := map[types.UID]bool{}
			pods, err := l.client.Resource(podResource).Namespace(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: loader.LabelRun})
			if err != nil {
				pods = &unstructured.UnstructuredList{}
			}
			for i := range pods.Items {
				pod := &pods.Items[i]
				there[pod.GetUID()] = pod.GetDeletionTimestamp() == nil
				if running[pod.GetUID()] == nil && pod.GetDeletionTimestamp() == nil {
					life, end := context.WithCancel(ctx)
					running[pod.GetUID()] = end
					all.Go(func() { l.runPod(life, pod) })
				}
			}
			for uid, end := range running {
				if err == nil && !there[uid] {
					end()
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
	}
}

// runPod runs the program as the pod of a run does, until ctx ends. What keeps it from that shows as a pod that failed.
func (l *Lane) runPod(ctx context.Context, pod *unstructured.Unstructured) {
	status, message := 1, ""
	r, err := l.runLoader(ctx, pod.GetLabels()[loader.LabelRun])
	if err == nil {
		status, message = cmp.Or(r.status.ExitStatus(), 0), r.output
	} else {
		message = err.Error()
	}
	if ctx.Err() != nil {
		return // the pod is gone
	}
	phase := "Succeeded"
	if status != 0 {
		phase = "Failed"
	}
	const most = 2000 // as kubelets do
	state := map[string]any{"exitCode": status, "reason": "Ended", "message": message[max(0, len(message)-most):]}
	text, _ := json.Marshal(map[string]any{"status": map[string]any{"phase": phase, "containerStatuses": []any{map[string]any{
		"name": "loader", "image": "loader", "imageID": "", "ready": false, "restartCount": 0, "state": map[string]any{"terminated": state},
	}}}})
	_, _ = l.client.Resource(podResource).Namespace(systemNamespace).Patch(ctx, pod.GetName(), types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status") // else its run does not end
}

// runLoader does the work of a run.
func (l *Lane) runLoader(ctx context.Context, run string) (*result, error) {
	dir, err := os.MkdirTemp("", "solutionctl-pod-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary
	file := filepath.Join(dir, "parameters.json")
	if err = l.parameters(ctx, run, file); err != nil {
		return nil, err
	}
	cmd := l.command(ctx, l.direct, loaderRun(file))
	cmd.Env = append(cmd.Env, "USER=loader")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return l.finish(ctx, cmd)
}

// loaderRun is the command of a pod of the loader.
func loaderRun(parameters string) []string {
	return []string{"deploy", "loader", "run", "--parameters", parameters, "--as", loaderAccount}
}

// parameters writes those of a run into a file.
func (l *Lane) parameters(ctx context.Context, run, file string) error {
	object, err := l.client.Resource(configMapResource).Namespace(systemNamespace).Get(ctx, "loader-"+run+"-parameters", metav1.GetOptions{})
	if err != nil {
		return err
	}
	text, _, err := unstructured.NestedString(object.Object, "data", "parameters.json")
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

// job is that of a run which has not ended, nil when there is none.
func (l *Lane) job(ctx context.Context) (*unstructured.Unstructured, error) {
	jobs, err := l.client.Resource(jobResource).Namespace(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: loader.LabelRun})
	if err != nil {
		return nil, err
	}
	for i := range jobs.Items {
		suspended, _, _ := unstructured.NestedBool(jobs.Items[i].Object, "spec", "suspend")
		_, ended, _ := unstructured.NestedFieldNoCopy(jobs.Items[i].Object, "status", "completionTime")
		failed, _, _ := unstructured.NestedInt64(jobs.Items[i].Object, "status", "failed")
		if !suspended && !ended && failed == 0 {
			return &jobs.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // no run is under way
}

// idle waits until the pods of the loader have ended.
func (l *Lane) idle(ctx context.Context) error {
	for {
		job, err := l.job(ctx)
		if err != nil || job == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", job.GetName(), ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// clearLoader removes what runs of the loader have left.
func (l *Lane) clearLoader(ctx context.Context) error {
	now := metav1.DeletePropagationBackground
	runs := metav1.ListOptions{LabelSelector: loader.LabelRun}
	for _, resource := range []schema.GroupVersionResource{jobResource, podResource, configMapResource, secretResource} {
		err := l.client.Resource(resource).Namespace(systemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &now}, runs)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, resource := range append(loaderKinds, configMapResource) {
		list, err := l.client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: loader.LabelPart})
		if err != nil {
			return err
		}
		for i := range list.Items {
			err = l.client.Resource(resource).Namespace(list.Items[i].GetNamespace()).Delete(ctx, list.Items[i].GetName(), metav1.DeleteOptions{PropagationPolicy: &now})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}
