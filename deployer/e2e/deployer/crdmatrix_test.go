package deployer_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// objects is the largest number of custom resources that the matrix is run with, besides none.
var objects = flag.Int("objects", 1, "custom resources in the matrix of definitions")

// TestDefinitionMatrix: whatever changes in a definition, upwards, back, or when all of it goes: what was stored is the
// same byte for byte, or nothing is changed until the loss is accepted, and then the export has every byte.
func TestDefinitionMatrix(t *testing.T) {
	t.Parallel()
	for _, change := range []struct {
		name        string
		first, next content
		up, down    bool // something is lost
		hidden      bool // and is there again after the way back, since no object was stored again
		inShort     bool // enough for short mode
	}{
		{name: "add a version", first: content{Versions: "v1"}, next: content{Versions: "v1 v2"}},
		{name: "drop a version", first: content{Versions: "v1 v2"}, next: content{Versions: "v2"}},
		{name: "replace the version", first: content{Versions: "v1"}, next: content{Versions: "v2"}},
		{name: "flip the storage version", first: content{Versions: "v1 v2"}, next: content{Versions: "v2 v1"}, inShort: true},
		{name: "no longer serve a version", first: content{Versions: "v1 v2"}, next: content{Versions: "v1- v2"}},
		{name: "remove a field", first: content{Fields: "colour: {type: string}"}, next: content{}, up: true, hidden: true, inShort: true},
		{name: "replace the version by a smaller one", first: content{Fields: "colour: {type: string}"}, next: content{Versions: "v2"}, up: true},
		{name: "begin to convert", first: content{Versions: "v1"}, next: content{Versions: "v1 v2", Conversion: "webhook"}},
		{name: "begin to convert with a loss", first: content{Versions: "v1"}, next: content{Versions: "v1 v2", Conversion: "lossy"}, down: true, inShort: true},
		{name: "begin to convert out of reach", first: content{Versions: "v1"}, next: content{Versions: "v1 v2", Conversion: "remote"}, down: true},
		{name: "stop converting", first: content{Versions: "v1 v2", Conversion: "webhook"}, next: content{Versions: "v2"}, inShort: true},
	} {
		for _, count := range []int{0, *objects} {
			t.Run(fmt.Sprintf("%s/%d", change.name, count), func(t *testing.T) {
				if count == 0 || !change.inShort {
					testcluster.Long(t, "the same with an object, and rows that lose, hide and convert")
				}
				m := &matrix{bed: newBed(t), count: count}
				m.importing("1.0.0", change.first)
				m.importing("2.0.0", change.next)
				m.begin("1.0.0", change.first)
				all := m.have
				m.activate("2.0.0", change.up)
				if change.hidden {
					m.have = all
				}
				m.activate("1.0.0", change.down)
				m.activate("2.0.0", change.hidden)
				m.deactivate()
			})
		}
	}
}

// matrix is one cell of the matrix.
type matrix struct {
	*bed
	count int
	port  int               // of the webhook that versions have, 0 when none can be asked
	have  map[string]string // what people wrote, by the name of the object
}

// importing imports a version. A conversion is a webhook that this process serves: one that loses nothing, one that is "lossy",
// and one that is "remote": only the API server reaches it.
func (m *matrix) importing(version string, c content) {
	m.Helper()
	if c.Conversion != "" {
		port := serveConversion(m.bed)
		hooked := withWebhook(m.bed)
		if c.Conversion != "remote" {
			m.port = port
		}
		c.Conversion = strings.Replace(hooked.Conversion, "path: /convert", "path: /"+c.Conversion+", port: "+strconv.Itoa(port), 1)
		text := strings.Split(hooked.Files["operator/cluster/webhook.yaml"], "---")
		service := "apiVersion: v1\nkind: Service\nmetadata: {name: webhook}\nspec: {type: ExternalName, externalName: localhost, selector: {app: webhook}, ports: [{port: " + strconv.Itoa(port) + "}]}\n"
		c.Files = map[string]string{"operator/cluster/webhook.yaml": service + "---" + strings.ReplaceAll(text[1], ":1.0.0", ":"+version)}
	}
	m.imported(version, c)
}

// begin activates the first version and makes the objects.
func (m *matrix) begin(version string, c content) {
	m.Helper()
	if _, err := m.bed.activate(version); err != nil {
		m.Fatal(err)
	}
	stored := strings.Fields("v1 " + c.Versions)
	spec := "hands: 2"
	if c.Fields != "" {
		spec += ", " + strings.ReplaceAll(c.Fields, "{type: string}", "red")
	}
	var group errgroup.Group
	group.SetLimit(8)
	for i := range m.count {
		object := &unstructured.Unstructured{}
		text := fmt.Sprintf("{apiVersion: %s/%s, kind: Clock, metadata: {name: clock-%05d, namespace: %s, labels: {number: x%d}}, spec: {%s}}", m.Group, stored[len(stored)-1], i, m.Env, i, spec)
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			m.Fatal(err)
		}
		group.Go(func() error {
			_, err := m.Cluster.Create(m.Context(), object, cluster.WriteOptions{Whole: true})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		m.Fatal(err)
	}
	m.have = m.read()
}

// read returns what people wrote, as the stored version of the definition shows it.
func (m *matrix) read() map[string]string {
	m.Helper()
	live := m.get(crds, "", m.crdName())
	versions, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
	version := ""
	for _, v := range versions {
		if one := v.(map[string]any); one["storage"] == true {
			version = one["name"].(string)
		}
	}
	m.Cluster.Refresh()
	found := map[string]string{}
	for object, err := range m.Cluster.List(m.Context(), kube.GroupVersionKind{Group: m.Group, Version: version, Kind: "Clock"}, "", metav1.ListOptions{}) {
		if err != nil {
			m.Fatal(err)
		}
		found[object.GetName()] = written(m.bed, object)
	}
	return found
}

// written returns the text that users wrote into an object.
func written(b *bed, object *unstructured.Unstructured) string {
	b.Helper()
	data, err := json.Marshal([]any{object.Object["spec"], object.GetLabels(), object.GetAnnotations()})
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

// webhookOfTests is the power that a conversion webhook of these tests needs: its Service leads to this machine.
var webhookOfTests = []string{string(schema.PowerTakesTraffic)}

func (m *matrix) activate(version string, lossy bool) {
	m.Helper()
	o := deployer.ActivateOptions{Options: plan.Options{NoWait: true, Allow: webhookOfTests}, Solution: m.Solution, Version: version}
	_, err := m.Activate(m.Context(), o)
	if !lossy || m.count == 0 {
		if err != nil {
			m.Fatal(err)
		}
		m.behindTheService()
		m.same(m.read())
		return
	}
	m.refused(err, report.DataLoss, m.crdName(), "--accept-data-loss "+m.crdName())
	m.same(m.read())
	var out exported
	o.AcceptDataLoss, o.Export = []string{m.crdName()}, out.open
	if _, err := m.Activate(m.Context(), o); err != nil {
		m.Fatal(err)
	}
	m.same(m.items(&out))
	if m.have = m.read(); len(m.have) != m.count {
		m.Errorf("%d objects are left of %d", len(m.have), m.count)
	}
}

// behindTheService makes the webhook what pods behind its Service are, so that the API server's proxy finds it. There are no
// nodes, so one pod is made up.
func (m *matrix) behindTheService() {
	m.Helper()
	system := m.Solution + "-system"
	if m.port == 0 || m.find(services, system, "webhook") == nil || m.find(pods, system, "webhook") != nil {
		return
	}
	await(m.T, func() (bool, bool) {
		account := kube.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
		return true, m.find(account, system, "default") != nil
	})
	address := hostAddress(m.T)
	pod := m.create("apiVersion: v1\nkind: Pod\nmetadata: {name: webhook, namespace: " + system + "}\nspec: {containers: [{name: webhook, image: none}]}\n")
	status := fmt.Sprintf(`{"status": {"podIP": %q, "podIPs": [{"ip": %q}]}}`, address, address)
	if _, err := m.Cluster.PatchStatus(m.Context(), pod, types.MergePatchType, []byte(status), cluster.WriteOptions{}); err != nil {
		m.Fatal(err)
	}
	m.create(fmt.Sprintf("apiVersion: v1\nkind: Endpoints\nmetadata: {name: webhook, namespace: %s}\nsubsets: [{ports: [{port: %d}], addresses: [{ip: %s, targetRef: {kind: Pod, name: webhook, namespace: %s}}]}]\n",
		system, m.port, address, system))
}

// hostAddress is an address of this machine that is not the loopback's: the API server proxies to no other.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range addresses {
		if network, ok := one.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("this machine has no address but the loopback's")
	}
	t.Skip("this machine has no address but the loopback's")
	return ""
}

func (m *matrix) deactivate() {
	m.Helper()
	o := deployer.DeactivateOptions{Solution: m.Solution}
	if m.count > 0 {
		_, err := m.Deactivate(m.Context(), o)
		m.refused(err, report.DataLoss, "--delete-data")
		m.same(m.read())
	}
	var out exported
	o.Data, o.Export = plan.DeleteData, out.open
	if _, err := m.Deactivate(m.Context(), o); err != nil {
		m.Fatal(err)
	}
	if m.find(crds, "", m.crdName()) != nil {
		m.Error("the definition is still there")
	}
	if m.count > 0 {
		m.same(m.items(&out))
	}
}

// items are the objects of an export.
func (m *matrix) items(out *exported) map[string]string {
	m.Helper()
	var list struct{ Items []unstructured.Unstructured }
	if err := json.Unmarshal([]byte(out.String()), &list); err != nil || !out.closed {
		m.Fatalf("export: %v, closed %v", err, out.closed)
	}
	found := map[string]string{}
	for _, item := range list.Items {
		found[item.GetName()] = written(m.bed, &item)
	}
	return found
}

func (m *matrix) same(got map[string]string) {
	m.Helper()
	if diff := cmp.Diff(m.have, got); diff != "" {
		m.Errorf("-before +after:\n%.2000s", diff)
	}
}

// serveConversion converts custom resources on a port of this machine, with the certificate that was made for it.
func serveConversion(b *bed) int {
	b.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(b.Context(), "tcp", ":0") // the API server comes by name, its proxy by an address
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(convert))
	server.Listener = listener
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		ctx, cancel := context.WithTimeout(context.Background(), testcluster.Deadline(time.Minute))
		defer cancel()
		secret, err := b.Cluster.Get(ctx, secrets, b.Solution+"-system", b.Solution+"-cert")
		if err != nil || secret == nil {
			return nil, fmt.Errorf("no certificate: %w", err)
		}
		data := map[string][]byte{}
		for key, value := range secret.Object["data"].(map[string]any) {
			if data[key], err = base64.StdEncoding.DecodeString(value.(string)); err != nil {
				return nil, err
			}
		}
		pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
		return &pair, err
	}}
	server.StartTLS()
	b.Cleanup(server.Close)
	return listener.Addr().(*net.TCPAddr).Port
}

// convert answers a ConversionReview: the versions of the matrix differ in their names only. A lossy webhook forgets the hands.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    *struct {
			UID     string           `json:"uid"`
			Version string           `json:"desiredAPIVersion"`
			Objects []map[string]any `json:"objects"`
		} `json:"request,omitempty"`
		Response map[string]any `json:"response,omitempty"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a ConversionReview", http.StatusBadRequest)
		return
	}
	for _, object := range review.Request.Objects {
		object["apiVersion"] = review.Request.Version
		if spec, ok := object["spec"].(map[string]any); ok && r.URL.Path == "/lossy" && strings.HasSuffix(review.Request.Version, "/v1") {
			delete(spec, "hands")
		}
	}
	review.Response = map[string]any{"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": review.Request.Objects}
	review.Request = nil
	if err := json.NewEncoder(w).Encode(review); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
