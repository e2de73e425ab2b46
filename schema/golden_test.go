package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func deployment() *schema.DeploymentState {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	finished := started.Add(time.Minute)
	object := schema.DeployedObject{
		ObjectRef: schema.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "db-operator"},
		UID:       "0f0e3a9c-6d7c-4a43-8a3c-0d8f5a1f6c11", Hash: strings.TrimPrefix(digest, "sha256:"), Phase: 7, ResourceVersion: "4711", Generation: 2,
	}
	leaving, kept := object, object
	leaving.Name, leaving.Leaving = "db-old", true
	kept.APIVersion, kept.Kind, kept.Namespace, kept.Name, kept.Phase, kept.Kept = "v1", "PersistentVolumeClaim", "shop", "data", 5, true
	created := schema.DeployedObject{
		ObjectRef: schema.ObjectRef{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "db"}, Hash: object.Hash, Phase: 6,
	}
	revision := schema.DeploymentRevision{
		Number: 2, Operation: "add", Version: "1.0.0", Outcome: schema.DeploymentDone, User: "admin", Tool: "1.0.0", Token: 3,
		Started: started, Finished: &finished, Settings: map[string]string{"webhook": "true"}, Content: digest, Objects: []schema.DeployedObject{object, kept},
	}
	pending := revision
	pending.Number, pending.Operation, pending.Version, pending.Outcome, pending.Finished = 3, "upgrade", "1.1.0", schema.DeploymentPending, nil
	pending.Objects = []schema.DeployedObject{created, leaving}
	old := revision
	old.Number, old.Version, old.Outcome, old.Objects = 1, "0.9.0", schema.DeploymentReplaced, nil
	return &schema.DeploymentState{
		Stamp: schema.NewStamp("deployment", "1.0.0"), Namespace: "shop", Solution: "db",
		Current: &revision, Pending: &pending, History: []schema.DeploymentRevision{old},
	}
}

// componentDeployment is the record of a component, with what format 1 did not have.
func componentDeployment() *schema.DeploymentState {
	d := deployment()
	d.Component, d.Pending, d.History = "api", nil, nil
	d.Current.Needs = []string{"database"}
	d.Current.Components = []schema.ComponentRevision{{Name: "cache", Content: d.Current.Content}}
	d.Current.Objects[0].Stays = true
	return d
}

// approvedDeployment is a record with what formats before 3 did not have.
func approvedDeployment() *schema.DeploymentState {
	d := deployment()
	d.Pending, d.History = nil, nil
	d.Approvals = []schema.PowerApproval{{
		Version: "1.0.0", Archive: strings.Repeat("0123456789abcdef", 4), ApprovedBy: "jane", ApprovedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Powers: []schema.Power{{
			Name: schema.PowerReadSecrets, Reach: schema.ReachCluster, Need: schema.NeedApproval,
			Object:  schema.ObjectRef{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "reader"},
			Subject: "ServiceAccount db-system/operator", Why: "read every Secret of the cluster", Field: "rules[0]", Effects: []string{"*"},
			Rules: []schema.PolicyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
		}},
	}}
	return d
}

// TestGoldenFiles reads and writes what is stored in clusters. A file of a format that was released never changes: later
// versions of the program have to read it.
func TestGoldenFiles(t *testing.T) {
	var (
		stamp    = schema.Stamp{FormatVersion: 1, WrittenBy: "1.0.0"}
		hex      = strings.Repeat("0123456789abcdef", 4)
		imported = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	)
	first := deployment()
	first.FormatVersion = 1
	golden(t, "deployment", first)
	second := componentDeployment()
	second.FormatVersion = 2
	golden(t, "deployment", second)
	golden(t, "deployment", approvedDeployment())
	one := schema.Import{
		Name: "db", Version: "1.0.0", Archive: schema.ImportedArchive{Path: "/var/lib/solutionctl/archives/db-1.0.0.iso", SHA256: hex, Size: 4 << 20},
		Payload: "sha256:" + hex, Images: map[string]string{"db-operator:1.0.0": "sha256:" + hex}, ImportedAt: imported, ImportedBy: "root@bootstrap",
	}
	golden(t, "imports", &schema.Imports{Stamp: stamp, Imports: map[string]schema.Import{"db-1.0.0": one}})
	signed, unsigned := one, one
	signed.Signers, unsigned.Signers, unsigned.Version = []string{"acme-release"}, []string{}, "1.1.0"
	golden(t, "imports", &schema.Imports{Stamp: schema.NewStamp("imports", "1.0.0"), Imports: map[string]schema.Import{"db-1.0.0": signed, "db-1.1.0": unsigned}})
	golden(t, "registry", &schema.ClusterRegistry{
		Stamp: stamp, Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{"https://10.0.0.1:5443"}, CA: "-----BEGIN CERTIFICATE-----\n",
	})
	golden(t, "monitoring", &schema.ClusterMonitoring{Stamp: stamp, Monitoring: schema.Monitoring{
		Labels: map[string]string{"release": "kps"}, RuleLabels: map[string]string{"role": "alert-rules"},
		Dashboards: schema.MonitoringDashboards{
			Labels: map[string]string{"grafana_dashboard": "yes"}, FolderAnnotation: "grafana_folder", Namespace: "monitoring",
		},
	}})
	golden(t, "clustername", &schema.StoredClusterName{Stamp: stamp, ClusterName: schema.ClusterName{Name: "Production Berlin", Colour: "red"}})
	golden(t, "payload", &schema.PayloadHead{Stamp: stamp, Images: []schema.PayloadImage{{
		Ref: schema.ImageRef{Name: "db-operator", Tag: "1.0.0"}, Digest: "sha256:" + hex, Origin: "registry.example/acme/db-operator:1.0.0",
	}}})
	golden(t, "applications", &schema.Applications{
		Stamp: stamp, Solution: "db", Version: "1.0.0", Definitions: []map[string]any{{"kind": "CustomResourceDefinition"}},
	})
	golden(t, "archive", &schema.StoredArchive{
		Stamp: stamp, Name: "db", Version: "1.0.0", SHA256: hex, Size: 5 << 20,
		Chunks:   schema.ArchiveChunks{ChunkSize: 4 << 20, Algorithm: "sha256", Digests: []byte(hex)},
		Original: "/mnt/db-1.0.0.iso", InPlace: true, Payload: "sha256:" + hex, Signers: []string{"SHA256:" + hex}, ImportedAt: imported,
	})
	contents := []schema.EnvironmentContents{{Name: "shop", Solutions: []schema.SolutionSelection{{
		Name: "db", Version: "1.0.0", Profiles: []string{"small"}, Components: map[string]schema.ComponentWish{"cache": schema.ComponentUnwanted, "mirror": schema.ComponentDefault},
		ValuesFrom: map[string]schema.ValuesSource{"api": {Secret: "api-values"}}, Accept: schema.Acceptance{ClusterWide: true, Hazards: []string{"escalate"}},
	}}}}
	golden(t, "load", &schema.LoadParameters{Stamp: stamp, Run: "0123456789ab", Environments: contents, Timeout: 1800, Repair: schema.RepairOn})
	golden(t, "loadprogress", &schema.LoadProgress{
		Stamp: stamp, Run: "0123456789ab", Phase: schema.LoadFailed, Digest: "sha256:" + hex, StartedAt: imported, UpdatedAt: imported.Add(time.Minute), Ready: 1,
		Parts: []schema.LoadPart{
			{Environment: "shop", Namespace: "shop", Solution: "db", Version: "1.0.0", State: schema.PartReady, StartedAt: imported, ReadyAt: imported.Add(time.Second)},
			{
				Environment: "shop", Namespace: "shop", Solution: "db", Component: "api", Version: "1.0.0", State: schema.PartFailed, StartedAt: imported,
				WaitingFor: []string{"Deployment shop/api: no pod is ready"}, Error: &schema.LoadError{Code: report.Timeout, Message: "not ready after 30m", Hint: "look at it"},
			},
		},
		Error: &schema.LoadError{Code: report.Timeout, Message: "not ready after 30m"}, Notices: []string{}, Loaded: []schema.LoadedContent{{Environment: "shop", Solution: "db"}},
	})
	golden(t, "notifications", &schema.Notifications{Stamp: stamp, Problems: map[string]schema.NotifiedProblem{"CheckFailed///host store": {
		Problem: schema.Problem{Name: "CheckFailed", Subject: "host store", Summary: "the store is full", Hint: "remove versions", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, Sent: true,
	}}})
	golden(t, "preload", &schema.PreloadedImages{
		Stamp: stamp, Sets: map[string][]string{"0123456789ab": {"registry.solutionctl.invalid/db-1.0.0/db-operator:1.0.0@sha256:" + hex}},
		Nodes: map[string]schema.PreloadedNode{"worker-1": {Set: "0123456789ab", At: imported}},
	})
	golden(t, "host", &schema.HostSettings{Stamp: stamp, RegistryMode: schema.RegistryMetalK8s})
}

func golden[T any](t *testing.T, name string, want *T) {
	t.Helper()
	format := reflect.ValueOf(want).Elem().FieldByName("FormatVersion").Int()
	file := filepath.Join("testdata", "stored", fmt.Sprintf("%s-%d.json", name, format))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := schema.ParseStored[T](name, file, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("%s is read as something else: %s", file, diff)
	}
	written, err := schema.MarshalStored(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), string(data)); diff != "" {
		t.Errorf("%s is written in another way: %s", file, diff)
	}
}
