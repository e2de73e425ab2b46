package deployer_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// helmChart draws a password on which its pods depend, and has hooks.
const helmChart = `{{- $password := randAlphaNum 20 -}}
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-password}
stringData: {password: {{ $password }}, url: "db://admin:{{ $password }}@{{ .Release.Name }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}, labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}}
data: {size: {{ .Values.size | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: db}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {checksum: {{ sha256sum $password }}}}
    spec:
      containers:
      - name: db
        image: {{ .Values.image }}
        env: [{name: SIZE, value: {{ .Values.size | quote }}}]
        ports: [{containerPort: 80}]
---
apiVersion: v1
kind: Secret
metadata: {name: token, annotations: {"helm.sh/hook": pre-install}}
stringData: {token: {{ randAlphaNum 24 }}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: init, annotations: {"helm.sh/hook": "pre-install,pre-upgrade"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.solutionctl.invalid/base-1.0.0/a:1}]}}}
`

// helmSite is a Solution of one chart, and Helm with the same chart.
type helmSite struct {
	*cloud
	chart   string // a file
	program string
}

// TestAdoptHelm adopts an installation by the real Helm, however it writes: no pod starts again, no password changes, and Helm no longer
// lists the release.
func TestAdoptHelm(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestAdoptHelm in deployer, with what Helm has written, without a cluster")
	dir := t.TempDir()
	helm := testcluster.Helm(t, dir)
	packed := deployertest.Chart(t, "db", map[string]string{"values.yaml": "size: 1\nreplicas: 1\nimage: registry.solutionctl.invalid/base-1.0.0/db:1\n", "templates/db.yaml": helmChart})
	chart := filepath.Join(dir, "db-1.0.0.tgz")
	if err := os.WriteFile(chart, []byte(packed), 0o600); err != nil {
		t.Fatal(err)
	}
	c := testcluster.StartFor(t, testcluster.Options{FakeNodes: 1, ReadyAtOnce: true})
	for _, applies := range []bool{true, false} { // as Helm 4 does, and as Helm 3 did
		t.Run(fmt.Sprintf("server-side %t", applies), func(t *testing.T) {
			s := &helmSite{newCloud(t, c), chart, helm}
			s.activated("1.0.0", content{Manifest: "components: [{name: db, chart: charts/db.tgz}]\n", Files: map[string]string{"charts/db.tgz": packed}})
			s.takeOver(applies)
		})
	}
}

// helm runs Helm in the environment's namespace.
func (s *helmSite) helm(args ...string) (string, error) {
	cmd := exec.CommandContext(s.Context(), s.program, append(args, "--kubeconfig", s.in.Kubeconfig, "--namespace", s.Env)...)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(s.program), "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_DATA_HOME=", "HELM_DRIVER=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *helmSite) mustHelm(args ...string) string {
	s.Helper()
	out, err := s.helm(args...)
	if err != nil {
		s.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// adopt adds the Solution and adopts the release of its component.
func (s *helmSite) adopt(change func(*deployer.AddOptions)) (*schema.Operation, error) {
	o := deployer.AddOptions{Options: plan.Options{Timeout: testcluster.Deadline(time.Minute)}, Environment: s.Env, Solution: s.Solution}
	o.Helm = map[string]plan.HelmRelease{"db": {}}
	if change != nil {
		change(&o)
	}
	return s.Add(s.Context(), o)
}

// running returns what has to stay: the data of Secrets, the template and the replicas of the Deployment, its pods, the address of the
// Service.
func (s *helmSite) running() string {
	s.Helper()
	var all []string
	for _, name := range []string{"db-password", "token"} {
		data, _, _ := unstructured.NestedStringMap(s.get(secrets, s.Env, name).Object, "data")
		for _, key := range []string{"password", "url", "token"} {
			plain, err := base64.StdEncoding.DecodeString(data[key])
			if err != nil {
				s.Fatal(err)
			}
			all = append(all, string(plain))
		}
	}
	live := s.deployment("db")
	all = append(all, fmt.Sprintf("template %s, %d replicas", live.Annotations["deployment.kubernetes.io/revision"], *live.Spec.Replicas))
	pods, err := s.in.Client().CoreV1().Pods(s.Env).List(s.Context(), metav1.ListOptions{LabelSelector: "app=db"})
	if err != nil {
		s.Fatal(err)
	}
	for _, pod := range pods.Items {
		all = append(all, string(pod.UID))
	}
	service, err := s.in.Client().CoreV1().Services(s.Env).Get(s.Context(), "db", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(append(all, service.Spec.ClusterIP), "\n")
}

func (s *helmSite) takeOver(applies bool) {
	side := fmt.Sprintf("--server-side=%t", applies)
	s.mustHelm("install", "db", s.chart, side, "--set", "size=3", "--wait", "--timeout", "1m")
	s.mustHelm("upgrade", "db", s.chart, side, "--set", "size=3,replicas=2", "--wait", "--timeout", "1m")
	s.scale("db", 3)
	await(s.T, func() (int32, bool) {
		status := s.deployment("db").Status
		return status.AvailableReplicas, status.AvailableReplicas == 3 && status.Replicas == 3
	})
	before, init := s.running(), s.uid("init")

	_, err := s.adopt(func(o *deployer.AddOptions) {
		o.Values = map[string]plan.SiteValues{"db": {Values: map[string]any{"image": "registry.solutionctl.invalid/base-1.0.0/db:2"}}}
	})
	s.refused(err, report.Refused, "Deployment "+s.Env+"/db", "spec.template.spec.containers[name=db].image", "--accept-restart")
	planned := s.must(s.adopt(func(o *deployer.AddOptions) { o.DryRun = true }))
	if s.running() != before || strings.Count(s.mustHelm("list", "--short"), "db") != 1 {
		s.Error("a plan changed something")
	}
	s.must(s.adopt(func(o *deployer.AddOptions) { o.Expect = planned.Digest }))
	if after := s.running(); after != before {
		s.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if s.uid("init") == init {
		s.Error("the hook of an upgrade was not run")
	}
	s.unknownToHelm()
	if again := s.must(s.adopt(nil)); !again.Empty() {
		s.Errorf("the same again changes something: %+v", again)
	}
	s.wantHealth(schema.HealthReady)
	s.must(s.Remove(s.Context(), deployer.RemoveOptions{Environment: s.Env, Solution: s.Solution}))
	if s.find(secrets, s.Env, "token") != nil || s.find(secrets, s.Env, "db-password") != nil {
		s.Error("Secrets are left")
	}
	s.nothingLeft()
}

// unknownToHelm: Helm has no release any more, and nothing on the objects is Helm's.
func (s *helmSite) unknownToHelm() {
	s.Helper()
	if listed := s.mustHelm("list", "--short"); strings.TrimSpace(listed) != "" {
		s.Errorf("Helm lists %s", listed)
	}
	if out, err := s.helm("upgrade", "db", s.chart); err == nil || !strings.Contains(out, `"db" has no deployed releases`) {
		s.Errorf("helm upgrade: %v\n%s", err, out)
	}
	for _, object := range []*unstructured.Unstructured{s.get(secrets, s.Env, "db-password"), s.get(configMaps, s.Env, "db"), s.get(deployments, s.Env, "db")} {
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == "helm" {
				s.Errorf("%s %s: Helm still has fields of it", object.GetKind(), object.GetName())
			}
		}
		if name := object.GetAnnotations()["meta.helm.sh/release-name"]; name != "" {
			s.Errorf("%s %s still says that it is of release %s", object.GetKind(), object.GetName(), name)
		}
	}
}

// scale changes a Deployment as an autoscaler does.
func (s *helmSite) scale(name string, replicas int) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)
	_, err := s.in.Client().AppsV1().Deployments(s.Env).Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "autoscaler"}, "scale")
	if err != nil {
		s.Fatal(err)
	}
}
