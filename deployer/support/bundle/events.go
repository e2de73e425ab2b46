package bundle

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// quotable are the events whose message Kubernetes composes of names and numbers: by component, then reason, the
// pattern of the message. Other messages may quote the output of a program, a command, or a field of an object.
var quotable = map[string]map[string]*lazyregexp.Regexp{
	"default-scheduler": {
		"Scheduled": lazyregexp.New(`^Successfully assigned \S+ to \S+$`), "FailedScheduling": lazyregexp.New(`^\d+/\d+ nodes are available: `),
	},
	"kubelet": {
		"Pulling": lazyregexp.New(`^Pulling image "[^"]*"$`), "Pulled": lazyregexp.New(`^(Successfully pulled|Container) image "[^"]*" `),
		"Failed": lazyregexp.New(`^Failed to pull image "[^"]*": `), "BackOff": lazyregexp.New(`^Back-off (pulling image "[^"]*"|restarting failed container) ?`),
		"FailedMount": lazyregexp.New(`^MountVolume.SetUp failed for volume "[^"]*" : (configmap|secret|references non-existent)`),
	},
	"deployment-controller": {"ScalingReplicaSet": lazyregexp.New(`^Scaled (up|down) replica set `)},
	"solutionctl-loader": {
		"LoadStarted": lazyregexp.New(`^run [0-9a-f]{10} has started$`),
		"LoadEnded":   lazyregexp.New(`^run [0-9a-f]{10} has ended: [A-Z][a-z]+, \d+ of \d+ parts are ready$`),
	},
	"replicaset-controller": {
		"SuccessfulCreate": lazyregexp.New(`^Created pod: \S+$`), "SuccessfulDelete": lazyregexp.New(`^Deleted pod: \S+$`),
		"FailedCreate": lazyregexp.New(`^Error creating: pods "[^"]*" is forbidden: (exceeded quota: |error looking up service account |violates PodSecurity )`),
	},
}

func (c *collector) events(namespace string) {
	for event := range c.objects(cluster.EventKind, namespace, metav1.ListOptions{}) {
		about := schema.ObjectRef{
			Kind:      word(camelCase, text(event, "involvedObject", "kind")),
			Namespace: name(text(event, "involvedObject", "namespace")), Name: name(text(event, "involvedObject", "name")),
		}
		taken := schema.SupportEvent{
			Object: about.String(), Type: word(camelCase, text(event, "type")), Reason: text(event, "reason"),
			Component: name(cmp.Or(text(event, "reportingComponent"), text(event, "source", "component"))),
			Count:     max(number(event, "count"), number(event, "series", "count"), 1),
			Last:      cmp.Or(text(event, "series", "lastObservedTime"), text(event, "lastTimestamp"), text(event, "eventTime")),
		}
		if !slices.Contains(reasons, taken.Reason) {
			taken.Reason = unknownWord
		}
		message := text(event, "message")
		if c.Logs || isQuotable(taken, event, message) {
			const enough = 1000
			taken.Message = strings.ToValidUTF8(message[:min(len(message), enough)], "")
		}
		c.document.Events = append(c.document.Events, taken)
	}
}

// isQuotable reports whether the message of an event is known to contain no quotes.
func isQuotable(e schema.SupportEvent, event *unstructured.Unstructured, message string) bool {
	component := cmp.Or(text(event, "source", "component"), e.Component)
	pattern := quotable[component][e.Reason]
	return pattern != nil && pattern.MatchString(message)
}

// logs returns the output of the containers of our pods.
func (c *collector) logs() []File {
	var files []File
	for _, pod := range c.document.Pods {
		for _, container := range pod.Containers {
			name := pod.Namespace + "/" + pod.Name + "/" + container.Name
			if len(files) == maxLogs {
				c.missing("more than %d logs", maxLogs)
				return files
			}
			const eachLog = 5 * time.Second
			ctx, cancel := context.WithTimeout(c.ctx, eachLog)
			data, err := c.Deployer.Cluster.Logs(ctx, pod.Namespace, pod.Name, container.Name, maxLog)
			cancel()
			if err != nil {
				c.missing("log of %s: %v", name, err)
				continue
			}
			files = append(files, File{"logs/" + name + ".log", data})
		}
	}
	return files
}
