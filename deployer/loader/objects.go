package loader

import (
	"encoding/base64"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var (
	jobKind     = kube.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	cronJobKind = kube.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}
)

// LabelRun is on everything that belongs to a run, with its name.
const LabelRun = "solutionctl.io/loader-run"

// newObject is an object of the namespace in which everything of the loader lies.
func newObject(kind kube.GroupVersionKind, name string, fields map[string]any) *unstructured.Unstructured {
	object := cluster.NewObject(kind, cluster.SystemNamespace, name)
	maps.Copy(object.Object, fields)
	object.SetLabels(ownLabels())
	return object
}

// ownLabels returns the labels of everything that the loader creates.
func ownLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "solutionctl-loader", "app.kubernetes.io/managed-by": cluster.FieldManager}
}

// ofRun marks an object as one of a run, which goes with its Job.
func ofRun(object *unstructured.Unstructured, run string, job *unstructured.Unstructured) *unstructured.Unstructured {
	cluster.SetLabel(object, LabelRun, run)
	if job != nil {
		object.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{ //nolint:forcetypeassert // made by newObject
			"apiVersion": "batch/v1", "kind": "Job", "name": job.GetName(), "uid": string(job.GetUID()), "controller": true, "blockOwnerDeletion": false,
		}}
	}
	return object
}

func jobName(run string) string        { return "loader-" + run }
func parametersName(run string) string { return "loader-" + run + "-parameters" }
func valuesName(run string) string     { return "loader-" + run + "-values" }

// Where the pod finds its parameters.
const (
	parametersKey  = "parameters.json"
	parametersPath = "/etc/loader/parameters"
	valuesKey      = "values.json"
	valuesPath     = "/etc/loader/values"
)

// Exit statuses after which another pod would fare no better.
var finalStatuses = []any{int64(2), int64(3), int64(4), int64(5), int64(6), int64(7), int64(8)}

// podUser is the user of a pod of the loader in its locks; the host is the pod.
const podUser = "loader"

// containerName is the name of the container in each pod.
const containerName = "loader"

// podSpec is that of the loader, under the restricted standard of pod security.
func podSpec(s schema.LoaderSpec, image, account, run string, values bool) map[string]any {
	volume := func(name, kind, field, object, path string) (mount, volume map[string]any) {
		return map[string]any{"name": name, "mountPath": path, "readOnly": true}, map[string]any{"name": name, kind: map[string]any{field: object}}
	}
	mount, parameters := volume("parameters", "configMap", "name", parametersName(run), parametersPath)
	mounts, volumes := []any{mount}, []any{parameters}
	command := []any{"deploy", "loader", "run", "--parameters", parametersPath + "/" + parametersKey, "--progress", "plain"}
	if values {
		mount, secret := volume("values", "secret", "secretName", valuesName(run), valuesPath)
		mounts, volumes = append(mounts, mount), append(volumes, secret)
		command = append(command, "--values", valuesPath+"/"+valuesKey)
	}
	spec := map[string]any{
		"serviceAccountName": account, "restartPolicy": "Never", "terminationGracePeriodSeconds": int64(30), "enableServiceLinks": false,
		"securityContext": map[string]any{
			"runAsNonRoot": true, "runAsUser": int64(65532), "runAsGroup": int64(65532), "fsGroup": int64(65532),
			"seccompProfile": map[string]any{"type": "RuntimeDefault"},
		},
		"containers": []any{map[string]any{
			"name": containerName, "image": image, "imagePullPolicy": "IfNotPresent", "args": command, "volumeMounts": mounts,
			"terminationMessagePolicy": "FallbackToLogsOnError",
			"env":                      []any{map[string]any{"name": "USER", "value": podUser}, map[string]any{"name": "GOMEMLIMIT", "value": "160MiB"}},
			"resources": map[string]any{
				"requests": map[string]any{"cpu": "50m", "memory": "64Mi"}, "limits": map[string]any{"memory": "192Mi"},
			},
			"securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}},
			},
		}},
		"volumes": volumes,
	}
	if s.Job.HostNetwork {
		spec["hostNetwork"] = true
		spec["dnsPolicy"] = "ClusterFirstWithHostNet"
	}
	if s.Job.PriorityClassName != "" {
		spec["priorityClassName"] = s.Job.PriorityClassName
	}
	if len(s.Job.NodeSelector) > 0 {
		_ = unstructured.SetNestedStringMap(spec, s.Job.NodeSelector, "nodeSelector") // it fails only below a value that is not a map
	}
	if len(s.Job.Tolerations) > 0 {
		spec["tolerations"] = tolerations(s.Job.Tolerations)
	}
	return spec
}

func tolerations(list []schema.Toleration) []any {
	all := make([]any, len(list))
	for i, t := range list {
		all[i], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&t) // it consists of strings
	}
	return all
}

// jobSpec is that of a run: a pod that crashed is followed by another one, one that was refused is not.
func jobSpec(s schema.LoaderSpec, pod map[string]any, labels map[string]any) (map[string]any, error) {
	ttl, err := time.ParseDuration(s.Job.TTL)
	if err != nil {
		return nil, fmt.Errorf("job.ttl: %w", err)
	}
	timeout, err := time.ParseDuration(s.Timeout)
	if err != nil {
		return nil, fmt.Errorf("timeout: %w", err)
	}
	return map[string]any{
		"backoffLimit": int64(*s.Job.BackoffLimit), "completions": int64(1), "parallelism": int64(1),
		"ttlSecondsAfterFinished": int64(ttl / time.Second),
		"activeDeadlineSeconds":   int64((timeout + timeToStart) / time.Second),
		"podFailurePolicy": map[string]any{"rules": []any{
			map[string]any{"action": "Ignore", "onPodConditions": []any{map[string]any{"type": "DisruptionTarget", "status": "True"}}},
			map[string]any{"action": "FailJob", "onExitCodes": map[string]any{"containerName": containerName, "operator": "In", "values": finalStatuses}},
		}},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod},
	}, nil
}

// timeToStart is the allowance for pulling the image, and for the lock of a killed run.
const timeToStart = 2 * time.Minute

// newJob returns the suspended Job of a run. The objects that it needs have it as owner, and so cannot exist before it.
func newJob(s schema.LoaderSpec, image, run string, values bool) (*unstructured.Unstructured, error) {
	spec, err := jobSpec(s, podSpec(s, image, accountName, run, values), map[string]any{LabelRun: run, "app.kubernetes.io/name": "solutionctl-loader"})
	if err != nil {
		return nil, err
	}
	spec["suspend"] = true
	return ofRun(newObject(jobKind, jobName(run), map[string]any{"spec": spec}), run, nil), nil
}

// parametersOf are the parameters of a run as they are stored: for everybody to see, and those that only its pod sees, nil where
// there are none.
func parametersOf(p *schema.LoadParameters) (visible *unstructured.Unstructured, hidden *unstructured.Unstructured, err error) {
	open, secret := withoutValues(p)
	text, err := marshalBounded(open, "the parameters of the loader")
	if err != nil {
		return nil, nil, err
	}
	visible = newObject(cluster.ConfigMapKind, parametersName(p.Run), map[string]any{"immutable": true, "data": map[string]any{parametersKey: string(text)}})
	if len(secret) == 0 {
		return visible, nil, nil
	}
	if text, err = marshalBounded(secret, "the values in the configuration of the loader"); err != nil {
		return nil, nil, err
	}
	return visible, newObject(cluster.SecretKind, valuesName(p.Run), map[string]any{
		"immutable": true, "type": "Opaque", "data": map[string]any{valuesKey: base64.StdEncoding.EncodeToString(text)},
	}), nil
}

// marshalBounded returns a document that fits into an object of the cluster.
func marshalBounded(document any, what string) ([]byte, error) {
	const most = 512 << 10
	text, err := schema.MarshalStored(document)
	if err == nil && len(text) > most {
		err = report.Errorf(report.Refused, "%s are larger than %d KiB", what, most>>10)
	}
	return text, err
}

// hiddenValues are the values of charts by environment, Solution and component.
type hiddenValues map[string]map[string]map[string]map[string]any

// withoutValues takes the values of charts out of parameters.
func withoutValues(p *schema.LoadParameters) (*schema.LoadParameters, hiddenValues) {
	open, hidden := *p, hiddenValues{}
	open.Environments = make([]schema.EnvironmentContents, len(p.Environments))
	for i, e := range p.Environments {
		open.Environments[i] = schema.EnvironmentContents{Name: e.Name, Solutions: make([]schema.SolutionSelection, len(e.Solutions))}
		for j, s := range e.Solutions {
			if len(s.Values) > 0 {
				if hidden[e.Name] == nil {
					hidden[e.Name] = map[string]map[string]map[string]any{}
				}
				hidden[e.Name][s.Name] = s.Values
			}
			s.Values = nil
			open.Environments[i].Solutions[j] = s
		}
	}
	return &open, hidden
}
