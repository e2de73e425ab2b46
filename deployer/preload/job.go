package preload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var (
	jobKind  = kube.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	nodeKind = kube.GroupVersionKind{Version: "v1", Kind: "Node"}
)

// LabelWork is on the Jobs of preloads, with the digest of their work.
const LabelWork = "solutionctl.io/preload"

// annotationNode is on a Job, with the name of its node.
const annotationNode = "solutionctl.io/preload-node"

const (
	container     = "preload"
	podSocket     = "/run/container-runtime.sock"
	podResultFile = "/dev/termination-log"
)

// hexOf is the beginning of the digest of texts, as a part of a name or a label.
func hexOf(texts ...string) string {
	const length = 16
	digest := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(digest[:])[:length]
}

func jobName(node string) string { return "preload-" + hexOf(node) }

// newJob returns the Job that does the work on one node, in whatever state its taints say it is.
func newJob(o *Options, n *target, timeout time.Duration) *unstructured.Unstructured {
	labels := map[string]any{"app.kubernetes.io/name": "solutionctl-preload", "app.kubernetes.io/managed-by": cluster.FieldManager, LabelWork: n.work(o)}
	const keptForMinutes = 10
	job := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"namespace": cluster.SystemNamespace, "name": jobName(n.name), "labels": labels, "annotations": map[string]any{annotationNode: n.name},
		},
		"spec": map[string]any{
			"backoffLimit": int64(0), "completions": int64(1), "parallelism": int64(1),
			"activeDeadlineSeconds":   int64(timeout / time.Second),
			"ttlSecondsAfterFinished": int64(keptForMinutes * 60), // of a command that was killed
			"template":                map[string]any{"metadata": map[string]any{"labels": labels}, "spec": podSpec(o, n)},
		},
	}}
	job.SetGroupVersionKind(jobKind)
	return job
}

// podSpec is that of a Job: under the restricted standard of pod security, except for the socket of the container runtime. Only root and its group
// may use that, so the pod has the group, and not the user.
func podSpec(o *Options, n *target) map[string]any {
	const user = 65532
	arguments := []any{"deploy", "node", "preload-here", "--socket", podSocket, "--result", podResultFile, "--progress", "plain"}
	for _, image := range o.images() {
		arguments = append(arguments, image)
	}
	return map[string]any{
		"restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false, "terminationGracePeriodSeconds": int64(5),
		"tolerations": []any{map[string]any{"operator": "Exists"}},
		"affinity": map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
			"nodeSelectorTerms": []any{map[string]any{"matchFields": []any{map[string]any{"key": "metadata.name", "operator": "In", "values": []any{n.name}}}}},
		}}},
		"securityContext": map[string]any{
			"runAsNonRoot": true, "runAsUser": int64(user), "runAsGroup": int64(0), "seccompProfile": map[string]any{"type": "RuntimeDefault"},
		},
		"containers": []any{map[string]any{
			"name": container, "image": o.program, "imagePullPolicy": "IfNotPresent", "args": arguments,
			"env":          []any{map[string]any{"name": "GOMEMLIMIT", "value": "96MiB"}},
			"volumeMounts": []any{map[string]any{"name": "socket", "mountPath": podSocket, "readOnly": true}},
			"resources": map[string]any{
				"requests": map[string]any{"cpu": "10m", "memory": "32Mi"}, "limits": map[string]any{"memory": "128Mi"},
			},
			"securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}},
			},
		}},
		"volumes": []any{map[string]any{"name": "socket", "hostPath": map[string]any{"path": n.socket, "type": "Socket"}}},
	}
}

// message is the result of a Job as the termination message of its pod, which has 4 KiB: images are the bits of a number, in the order of the
// arguments.
type message struct {
	schema.NodePreload
	Missing  string `json:"missing,omitempty"`
	Unpinned string `json:"unpinned,omitempty"`
}

const (
	maxProblem = 1000
	digits     = 62
)

// Message writes the result of [OnNode] as the termination message of a pod.
func Message(result *schema.NodePreload, images []string) []byte {
	m := message{*result, bits(result.Missing, images), bits(result.Unpinned, images)}
	m.NodePreload.Missing, m.NodePreload.Unpinned = nil, nil
	m.Problem, m.Hint = report.OneLine(m.Problem, maxProblem), report.OneLine(m.Hint, maxProblem)
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // plain data
	}
	return data
}

// parseMessage reads what [Message] wrote; nil for anything else.
func parseMessage(text string, images []string) *schema.NodePreload {
	var m message
	if json.Unmarshal([]byte(text), &m) != nil {
		return nil
	}
	missing, ok := ofBits(m.Missing, images)
	unpinned, alsoOK := ofBits(m.Unpinned, images)
	if !ok || !alsoOK {
		return nil
	}
	result := m.NodePreload
	result.Missing, result.Unpinned = missing, unpinned
	return &result
}

// bits has a bit for each of the images that is in some.
func bits(some, images []string) string {
	in := map[string]bool{}
	for _, image := range some {
		in[image] = true
	}
	var number big.Int
	for i, image := range images {
		if in[image] {
			number.SetBit(&number, i, 1)
		}
	}
	if number.Sign() == 0 {
		return ""
	}
	return number.Text(digits)
}

func ofBits(text string, images []string) (some []string, ok bool) {
	if text == "" {
		return nil, true
	}
	number, ok := new(big.Int).SetString(text, digits)
	if !ok || number.Sign() < 0 || number.BitLen() > len(images) {
		return nil, false
	}
	for i, image := range images {
		if number.Bit(i) == 1 {
			some = append(some, image)
		}
	}
	return some, true
}
