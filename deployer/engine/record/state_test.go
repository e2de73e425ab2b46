package record

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// recorded returns an engine whose API server only lists its kinds.
func recorded(t *testing.T) *Store {
	t.Helper()
	const list = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[`
	answers := map[string]string{
		"/api": list + `{"versions":[{"version":"v1","resources":[
{"resource":"secrets","responseKind":{"kind":"Secret"},"scope":"Namespaced","verbs":["get"]},
{"resource":"namespaces","responseKind":{"kind":"Namespace"},"scope":"Cluster","verbs":["get"]},
{"resource":"configmaps","responseKind":{"kind":"ConfigMap"},"scope":"Namespaced","verbs":["get"]}]}]}]}`,
		"/apis": list + "]}",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers[r.URL.Path] == "" {
			t.Errorf("%s %s was asked for", r.Method, r.URL)
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(answers[r.URL.Path]))
	}))
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("{clusters: [{name: a, cluster: {server: '"+server.URL+"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Connect(cluster.Options{Kubeconfig: config, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &Store{Cluster: c, Tool: "1.2.3"}
}

// object reads an object of one YAML document.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// stored returns a context with cached Secrets of the system namespace.
func stored(t *testing.T, secrets ...*unstructured.Unstructured) context.Context {
	t.Helper()
	ctx := cluster.WithMemory(t.Context())
	cluster.Remember(ctx, cluster.SecretKind, "", secrets)
	return ctx
}

// TestGoldenRecord reads records of earlier versions, and writes them in the current format.
func TestGoldenRecord(t *testing.T) {
	for _, file := range []string{"testdata/record-1.json", "testdata/record-1-tasks.json"} {
		t.Run(file, func(t *testing.T) { goldenRecord(t, file) })
	}
}

func goldenRecord(t *testing.T, file string) {
	t.Helper()
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, key := recorded(t), Key{"shop", "db", ""}
	secret := newSecret(nil, "state.db.umvvm3ba", "state", "db.umvvm3ba", map[string][]byte{"state.json.gz": e.compressors.compress(golden)})
	s, err := e.State(stored(t, secret), key)
	if err != nil {
		t.Fatal(err)
	}
	if s.Secret() != key.SecretName() || s.Key != key || s.Current.Number != 2 || s.Pending.Number != 3 || len(s.History) != 1 {
		t.Errorf("%s: %+v", s.Secret(), s)
	}
	written, err := s.document("1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(golden), `"formatVersion": 1`, `"formatVersion": 3`, 1)
	if diff := cmp.Diff(newer, string(written)); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{"app.kubernetes.io/managed-by": "solutionctl", "solutionctl.io/stores": "state", "solutionctl.io/owner": "db.umvvm3ba"}
	if diff := cmp.Diff(want, secret.GetLabels()); diff != "" || secret.Object["type"] != "solutionctl.io/state" || secret.GetNamespace() != "solutionctl-system" {
		t.Errorf("type %v, namespace %s: %s", secret.Object["type"], secret.GetNamespace(), diff)
	}
	if !Stored(secret) || Stored(&unstructured.Unstructured{Object: map[string]any{}}) {
		t.Error("what the engine has stored is not known")
	}
}

// TestDamagedRecords checks that a record that cannot be read has an error and no content.
func TestDamagedRecords(t *testing.T) {
	golden, err := os.ReadFile("testdata/record-1.json")
	if err != nil {
		t.Fatal(err)
	}
	e, key := recorded(t), Key{"shop", "db", ""}
	record := func(data []byte) *unstructured.Unstructured {
		return newSecret(nil, key.SecretName(), "state", key.ID(), map[string][]byte{stateKey: data})
	}
	pack := e.compressors.compress
	noData := record(nil)
	delete(noData.Object, "data")
	for name, test := range map[string]struct {
		secret *unstructured.Unstructured
		code   report.Code
		text   string
	}{
		"cut off":                     {record(pack(golden)[:100]), report.Corrupt, "unexpected EOF"},
		"not compressed":              {record(golden), report.Corrupt, "gzip"},
		"without data":                {noData, report.Corrupt, "it has no data state.json.gz"},
		"not JSON":                    {record(pack([]byte("{"))), report.Corrupt, ""},
		"of another Solution":         {record(pack(bytes.Replace(golden, []byte(`"db"`), []byte(`"web"`), 1))), report.Corrupt, "is the record of shop/web, but has another name"},
		"of another namespace":        {record(pack(bytes.Replace(golden, []byte(`"shop"`), []byte(`"prod"`), 1))), report.Corrupt, "is the record of prod/db, but has another name"},
		"written by a later version":  {record(pack(bytes.Replace(golden, []byte(`"formatVersion": 1`), []byte(`"formatVersion": 9`), 1))), report.Refused, "has format 9, this program reads up to 3"},
		"with a field that has to be": {record(pack(bytes.Replace(golden, []byte(`"outcome": "done",`), nil, 1))), report.Corrupt, "outcome"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := e.ReadState(stored(t, test.secret), key)
			if err != nil {
				t.Fatal(err)
			}
			if report.CodeOf(s.Damage) != test.code || !strings.Contains(s.Damage.Error(), test.text) || !strings.Contains(s.Damage.Error(), "Secret solutionctl-system/"+key.SecretName()) {
				t.Errorf("%s: %v", report.CodeOf(s.Damage), s.Damage)
			}
			if hint := strings.Join(report.Hints(s.Damage), ""); test.code == report.Corrupt != strings.Contains(hint, "deploy repair --records") {
				t.Errorf("hint %q", hint)
			}
			if s.Key != key || s.Current != nil || s.Pending != nil || s.History != nil {
				t.Errorf("believed: %+v", s)
			}
			if other := decodeRecord(test.secret); other.Name != "db" || other.Namespace != "" {
				t.Errorf("without a question, it is of %q", other.Key)
			}
		})
	}
	if s, err := e.State(stored(t), key); err != nil || s.Key != key || s.Current != nil || s.Secret() != "" {
		t.Errorf("nothing is deployed: %+v, %v", s, err)
	}
}

func TestFindKey(t *testing.T) {
	key := Key{"shop", "my", "demo"}
	if got, known := FindKey(key.ID(), "prod", "shop"); !known || got != key {
		t.Errorf("%v %t", got, known)
	}
	if got, known := FindKey(key.ID(), "prod"); known || got != (Key{Name: "my", Component: "demo"}) {
		t.Errorf("of a namespace that is not asked for: %v %t", got, known)
	}
	if got, known := FindKey("nonsense", "shop"); known || got != (Key{}) {
		t.Errorf("no ID at all: %v %t", got, known)
	}
	if got := (Key{"", "demo", ""}).String() + " " + (Key{"shop", "demo", "api"}).String(); got != "demo shop/demo.api" {
		t.Errorf("in messages: %s", got)
	}
}

// TestFindKeys finds the same keys as FindKey does one by one.
func TestFindKeys(t *testing.T) {
	namespaces := []string{"", "prod", "shop"}
	ids := []string{"nonsense", "my.demo.aaaaaaaa"}
	for _, namespace := range []string{"", "prod", "shop", "other"} {
		for _, key := range []Key{{namespace, "my", ""}, {namespace, "my", "demo"}, {namespace, "your", ""}} {
			ids = append(ids, key.ID())
		}
	}
	want := map[string]Key{}
	for _, id := range ids {
		if key, known := FindKey(id, namespaces...); known {
			want[id] = key
		}
	}
	if got := FindKeys(slices.Concat(ids, ids), namespaces...); !maps.Equal(got, want) || len(got) != 9 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// BenchmarkFindKeys finds five releases in each of many namespaces.
func BenchmarkFindKeys(b *testing.B) {
	for _, n := range []int{50, 200, 1000} {
		var namespaces, ids []string
		for i := range n {
			namespaces = append(namespaces, fmt.Sprintf("site-%d", i))
			for s := range 5 {
				ids = append(ids, Key{Namespace: namespaces[i], Name: fmt.Sprintf("solution-%d", s)}.ID())
			}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if found := FindKeys(ids, namespaces...); len(found) != len(ids) {
					b.Fatal(len(found))
				}
			}
		})
	}
}

// TestStoredContent checks that stored content is returned, or its problem reported.
func TestStoredContent(t *testing.T) {
	e := recorded(t)
	data := []byte(strings.Repeat("content", 100))
	digest := DigestOf(data)
	packed := e.compressors.compress(data)
	parts := partsOf("demo.a", digest, packed)
	if len(parts) != 1 || parts[0].GetName() != "content.demo.a."+strings.TrimPrefix(digest, "sha256:") || parts[0].Object["immutable"] != true || !Stored(parts[0]) {
		t.Fatalf("%d parts: %v", len(parts), parts[0])
	}
	with := func(change func(*unstructured.Unstructured)) []*unstructured.Unstructured {
		secret := parts[0].DeepCopy()
		change(secret)
		return []*unstructured.Unstructured{secret}
	}
	dataIs := func(data []byte) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.Object["data"] = map[string]any{contentKey: base64.StdEncoding.EncodeToString(data)}
		}
	}
	counts := func(n string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{annotationParts: n}) }
	}
	for name, test := range map[string]struct {
		secrets []*unstructured.Unstructured
		code    report.Code
		text    string
	}{
		"as it was stored":       {secrets: parts},
		"nothing is there":       {nil, report.NotFound, "does not exist"},
		"of other content":       {with(dataIs(e.compressors.compress([]byte("other")))), report.Corrupt, "it has digest sha256:"},
		"cut off":                {with(dataIs(packed[:len(packed)-9])), report.Corrupt, "EOF"},
		"emptied":                {with(func(o *unstructured.Unstructured) { delete(o.Object, "data") }), report.Corrupt, "no data content.gz"},
		"a part is missing":      {with(counts("2")), report.NotFound, ".001 with the content does not exist"},
		"more parts than can be": {with(counts("100000")), report.Corrupt, annotationParts},
		"no number of parts":     {with(counts("two")), report.Corrupt, annotationParts},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := e.LoadContent(stored(t, test.secrets...), "demo.a", digest)
			if test.code == "" {
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: %v", report.CodeOf(err), err)
			}
		})
	}
	if err := CheckSize(make([]byte, maxContent+1)); report.CodeOf(err) != report.Refused {
		t.Errorf("more than can be stored: %v", err)
	}
	if err := CheckSize(make([]byte, maxContent)); err != nil {
		t.Error(err)
	}
}

// TestPartsOfContent checks that large content is split into Secrets that sort in the order of the parts.
func TestPartsOfContent(t *testing.T) {
	packed := bytes.Repeat([]byte("0123456789"), partSize/10*2+1)
	parts := partsOf("demo.a", "sha256:d", packed)
	var names []string
	var whole []byte
	for _, part := range parts {
		names = append(names, part.GetName())
		data, err := cluster.SecretData(part, contentKey)
		if err != nil || len(data) > partSize {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		whole = append(whole, data...)
	}
	if !slices.Equal(names, []string{"content.demo.a.d", "content.demo.a.d.001", "content.demo.a.d.002"}) || !bytes.Equal(whole, packed) {
		t.Errorf("%v, %d bytes", names, len(whole))
	}
	if parts[0].GetAnnotations()[annotationParts] != "3" || parts[1].GetAnnotations()[annotationParts] != "" || parts[2].GetAnnotations()[annotationDigest] != "sha256:d" {
		t.Errorf("annotations %v and %v", parts[0].GetAnnotations(), parts[2].GetAnnotations())
	}
}

func TestSameData(t *testing.T) {
	secret := func(data string) *unstructured.Unstructured {
		return object(t, "{apiVersion: v1, kind: Secret, data: "+data+"}")
	}
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"{a: eA==}", "{a: eA==}", true},
		{"{a: eA==}", "{a: eQ==}", false},
		{"{a: eA==}", "{b: eA==}", false},
		{"{a: eA==}", "{a: eA==, b: eA==}", false},
		{"{}", "{}", true},
	} {
		if got := sameData(secret(test.a), secret(test.b)); got != test.same {
			t.Errorf("%s and %s: %t", test.a, test.b, got)
		}
	}
}

func TestKey(t *testing.T) {
	long := strings.Repeat("s", 54)
	ids := map[string]Key{}
	for _, key := range []Key{
		{"", "demo", ""},
		{"demo", "", ""},
		{"shop", "demo", ""},
		{"shop", "demo2", ""},
		{"shopdemo", "demo", ""},
		{strings.Repeat("n", 63), long, ""},
		{"shop", "demo", "api"},
		{"shop", "demo", "web"},
		{"", "demo", "api"},
		{"shop", long[:27], long[:26]},
	} {
		id := key.ID()
		if other, taken := ids[id]; taken {
			t.Errorf("%q and %q have the same id %s", key, other, id)
		}
		ids[id] = key
		if len(id) > 63 {
			t.Errorf("%q has %d characters, which is too long for a label", id, len(id))
		}
	}
	if got := (Key{"shop", "demo", ""}).ID(); got != "demo.pvbdryt6" {
		t.Errorf("the id of a key has changed to %s: nothing that is deployed would be found any more", got)
	}
}

func TestInventory(t *testing.T) {
	entry := func(name, uid, hash string) schema.DeployedObject {
		return schema.DeployedObject{ObjectRef: schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: name}, UID: uid, Hash: hash}
	}
	s := &State{
		Current: &schema.DeploymentRevision{Objects: []schema.DeployedObject{entry("a", "1", "old"), entry("b", "2", "old")}},
		Pending: &schema.DeploymentRevision{Objects: []schema.DeployedObject{entry("b", "", "new"), entry("c", "", "new")}},
	}
	var got []string
	for _, object := range s.Inventory() {
		got = append(got, object.Name+" "+object.UID+" "+object.Hash)
	}
	slices.Sort(got)
	if diff := cmp.Diff(got, []string{"a 1 old", "b 2 new", "c  new"}); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s := &State{}
	for i := range int64(8) {
		s.AddHistory(&schema.DeploymentRevision{Number: i + 1, Objects: []schema.DeployedObject{{}}}, schema.DeploymentDone)
	}
	var got []int64
	for _, r := range s.History {
		got = append(got, r.Number)
		if r.Objects != nil {
			t.Error("the history keeps inventories")
		}
	}
	if diff := cmp.Diff(got, []int64{8, 7, 6, 5, 4}); diff != "" || s.Last() != 8 {
		t.Errorf("last %d: %s", s.Last(), diff)
	}
}

func TestDecompressIsBounded(t *testing.T) {
	var c compressors
	if _, err := decompress(c.compress(make([]byte, 1001)), 1000); err == nil {
		t.Error("more than the limit was accepted")
	}
	if data, err := decompress(c.compress(make([]byte, 1000)), 1000); err != nil || len(data) != 1000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestEndedJobsOfAllRevisions(t *testing.T) {
	job := func(hash string, completed bool) []schema.DeployedObject {
		return []schema.DeployedObject{{ObjectRef: schema.ObjectRef{APIVersion: "batch/v1", Kind: "Job", Name: "a"}, Hash: hash, Completed: completed}}
	}
	s := &State{
		Current: &schema.DeploymentRevision{Objects: job("current", true)}, Pending: &schema.DeploymentRevision{Objects: job("running", false)},
		History: []schema.DeploymentRevision{{Objects: job("old", true)}},
	}
	for _, hashes := range s.Ended() {
		if !slices.Equal(hashes, []string{"current", "old"}) {
			t.Errorf("got %v", hashes)
		}
	}
	if len(s.Ended()) != 1 || len(s.Deployed()) != 1 || len((&State{}).Ended()) != 0 {
		t.Error("ended Jobs or their inventory are not counted")
	}
	s = &State{}
	s.AddHistory(&schema.DeploymentRevision{Number: 1, Objects: slices.Concat(job("old", true), job("other", false))}, schema.DeploymentDone)
	if kept := s.History[0].Objects; len(kept) != 1 || kept[0].Hash != "old" {
		t.Errorf("the history has %v", kept)
	}
}

// TestWrittenAt checks the time of the last write.
func TestWrittenAt(t *testing.T) {
	o := object(t, `{apiVersion: v1, kind: A, metadata: {managedFields: [{manager: a, time: "2026-01-02T00:00:00Z"}, {manager: b, time: "2026-01-03T00:00:00Z"}, {manager: c}]}}`)
	if got := (&State{secret: o}).WrittenAt(); got.Format(time.DateOnly) != "2026-01-03" || !new(State).WrittenAt().IsZero() {
		t.Errorf("written at %s", got)
	}
}
