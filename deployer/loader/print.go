package loader

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// JobManifest returns the objects of a run, for a platform that applies them itself: the account with exactly its
// permissions, the parameters, the ConfigMap for its progress, and the Job. It is refused unless the environments exist
// and the versions are active. The platform deletes the account afterwards.
func (l *Launcher) JobManifest(ctx context.Context) ([]byte, error) {
	p, err := l.prepare(ctx, preparation{dry: true})
	if err != nil {
		return nil, err
	}
	if len(p.Create) > 0 || activates(p.Activate) {
		return nil, report.Errorf(report.Refused, "environments have to be created and versions to be activated before a Job can be").
			WithHint("%s, or the commands that '%s' names", report.Run("deploy loader start"), report.Run("deploy loader plan"))
	}
	if p.Run == "" {
		return nil, report.Errorf(report.Refused, "there is nothing to do, and so no Job")
	}
	visible, hidden, err := parametersOf(p.parameters)
	if err != nil {
		return nil, err
	}
	job, err := newJob(l.spec(), p.Image, p.Run, hidden != nil)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(job.Object, "spec", "suspend")
	progress, err := progressObject(l.newProgress(p))
	if err != nil {
		return nil, err
	}
	objects := append(labelled(account(accountName, p.rights), LabelPart, accountName), progress, ofRun(visible, p.Run, nil))
	if hidden != nil {
		objects = append(objects, ofRun(hidden, p.Run, nil))
	}
	return manifest(append(objects, job))
}

// CronJobManifest returns the objects of repairs, for a platform that applies them itself.
func (l *Launcher) CronJobManifest(ctx context.Context) ([]byte, error) {
	p, err := l.resolve(ctx, l.spec())
	if err != nil {
		return nil, err
	}
	objects, err := l.repairs(ctx, p)
	if err != nil {
		return nil, err
	}
	if objects == nil {
		return nil, report.Errorf(report.Refused, "the configuration wants no repairs").WithHint("set spec.repair.mode to %s or %s", schema.RepairObserve, schema.RepairOn)
	}
	return manifest(labelled(objects, LabelPart, repairName))
}

// manifest are documents for 'kubectl apply'.
func manifest(objects []*unstructured.Unstructured) ([]byte, error) {
	var text bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	return text.Bytes(), nil
}

// Logs returns the end of the logs of the last run's pods, the oldest first.
func (l *Launcher) Logs(ctx context.Context) ([]schema.LogLine, error) {
	progress, _, err := readProgress(ctx, l.Deployer.Cluster)
	if err != nil {
		return nil, err
	}
	if progress == nil {
		return nil, NeverRan()
	}
	f := &follower{Launcher: l, run: progress.Run}
	pods, err := f.pods(ctx)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, report.Errorf(report.NotFound, "no pod of run %s is there any more: its Job was deleted, or its time is up", progress.Run)
	}
	lines := []schema.LogLine{}
	for _, pod := range pods {
		const most = 1 << 20
		log, err := l.Deployer.Cluster.Logs(ctx, cluster.SystemNamespace, pod.GetName(), containerName, most)
		if err != nil {
			return nil, err
		}
		for text := range strings.Lines(string(log)) {
			lines = append(lines, schema.LogLine{Namespace: cluster.SystemNamespace, Pod: pod.GetName(), Container: containerName, Text: strings.TrimSuffix(text, "\n")})
		}
	}
	return lines, nil
}
