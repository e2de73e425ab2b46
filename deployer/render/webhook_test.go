package render_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema/report"
)

var convertedCRD = strings.Replace(crd, "  scope: Namespaced", `  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: somewhere, name: db-webhook, path: /convert}}`, 1)

const webhook = `apiVersion: v1
kind: Service
metadata: {name: db-webhook, namespace: somewhere}
spec: {selector: {app: db-webhook}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: db-webhook}
spec:
  selector: {matchLabels: {app: db-webhook}}
  template:
    metadata: {labels: {app: db-webhook, tier: cluster}}
    spec:
      containers: [{name: webhook, image: "{{ repository }}/db-operator:1.0.0"}]
      volumes: [{name: cert, secret: {secretName: serving}}, {name: config, configMap: {name: other}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: db}
webhooks:
  - name: dbs.db.example
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {namespace: somewhere, name: db-webhook}}
    rules: [{apiGroups: [db.example], apiVersions: ["*"], operations: [CREATE], resources: [dbs]}]
`

func webhookPayload(t *testing.T, change ...string) *render.Payload {
	t.Helper()
	replace := strings.NewReplacer(change...)
	return newPayload(t, map[string]string{
		"operator/deploy/crds/dbs_crd.yaml": replace.Replace(convertedCRD), "operator/cluster/webhook.yaml": replace.Replace(webhook),
	})
}

func activation(t *testing.T, p *render.Payload, s render.Settings) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render.Activation(p, s)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, objects)
	return objects
}

func text(t *testing.T, o *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func decoded(t *testing.T, s string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// handshake calls a webhook the way the API server does: with the Secret that its pods serve and the bundle that the
// API server trusts.
func handshake(t *testing.T, secret *unstructured.Unstructured, bundle, host string, at time.Time) error {
	t.Helper()
	pair, err := tls.X509KeyPair(decoded(t, text(t, secret, "data", "tls.crt")), decoded(t, text(t, secret, "data", "tls.key")))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(decoded(t, bundle)) {
		t.Fatal("no certificate in the bundle")
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // no more calls follow
	go func() {
		if served, failure := listener.Accept(); failure == nil {
			_, _ = served.Read(make([]byte, 1)) // makes the handshake, until the client goes
			_ = served.Close()
		}
	}()
	connection, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{
		RootCAs: trusted, ServerName: host, Time: func() time.Time { return at }, MinVersion: tls.VersionTLS13,
	})
	if err != nil {
		return err
	}
	return connection.Close()
}

const serviceHost = "db-webhook.db-system.svc"

func TestConversionWebhook(t *testing.T) {
	p, s := webhookPayload(t), settings()
	wanted, err := render.ActivationSecrets(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"serving"}, wanted); diff != "" {
		t.Fatal(diff)
	}
	objects := activation(t, p, s)
	want := []string{
		"Namespace /db-system", "CustomResourceDefinition /dbs.db.example", "Service db-system/db-webhook",
		"Deployment db-system/db-webhook", "ValidatingWebhookConfiguration /db", "Secret db-system/serving",
	}
	if diff := cmp.Diff(want, names(objects)); diff != "" {
		t.Fatal(diff)
	}
	definition, secret := objects[1], objects[5]
	client := []string{"spec", "conversion", "webhook", "clientConfig"}
	if got := text(t, definition, append(client, "service", "namespace")...); got != "db-system" {
		t.Errorf("the API server looks for the webhook in namespace %s", got)
	}
	bundle := text(t, definition, append(client, "caBundle")...)
	admission, _, _ := unstructured.NestedSlice(objects[4].Object, "webhooks")
	config := admission[0].(map[string]any)["clientConfig"].(map[string]any)
	if config["caBundle"] != bundle || config["service"].(map[string]any)["namespace"] != "db-system" {
		t.Errorf("the admission webhook is called as %v", config)
	}
	if err := handshake(t, secret, bundle, serviceHost, now); err != nil {
		t.Error(err)
	}
	if err := handshake(t, secret, bundle, "db-webhook.other.svc", now); err == nil {
		t.Error("the certificate is good for another namespace")
	}

	t.Run("with another certificate", func(t *testing.T) {
		others := activation(t, p, s)
		if cmp.Equal(objects, others) {
			t.Fatal("two certificates are the same")
		}
		for i := range objects {
			if diff := cmp.Diff(render.WithoutCertificates(objects[i]), render.WithoutCertificates(others[i])); diff != "" {
				t.Error(diff)
			}
		}
		if text(t, definition, append(client, "caBundle")...) != bundle {
			t.Error("the object itself was changed")
		}
		for _, test := range []struct{ path, value, want string }{
			{"spec.conversion.webhook.clientConfig.caBundle", `"LS0t"`, ""},
			{"webhooks[name=a].clientConfig.caBundle", `"LS0t"`, ""},
			{"spec.template.metadata.annotations[solutionctl.io/certificate]", `"12ab"`, ""},
			{"spec.conversion.webhook", `{"clientConfig":{"caBundle":"LS0t","service":{"name":"x"}}}`, `{"clientConfig":{"service":{"name":"x"}}}`},
			{"spec.template.metadata.annotations", `{"a":"b","solutionctl.io/certificate":"12ab"}`, `{"a":"b"}`},
			{"webhooks", `[{"clientConfig":{"caBundle":"LS0t"}}]`, `[{"clientConfig":{}}]`},
			{"spec.schema", `{"caBundle":{"type":"string"}}`, `{"caBundle":{"type":"string"}}`},
			{"spec.replicas", `3`, `3`},
			{"data.text", `"caBundle: x"`, `"caBundle: x"`},
			{"caBundles", `"x"`, `"x"`},
		} {
			if got := render.ValueWithoutCertificates(test.path, test.value); got != test.want {
				t.Errorf("%s: %s, want %s", test.path, got, test.want)
			}
		}
	})
	t.Run("rendered again", func(t *testing.T) {
		s := s
		s.Secrets = map[string]*unstructured.Unstructured{"serving": secret}
		s.Now = now.AddDate(2, 0, 0)
		if diff := cmp.Diff(objects, activation(t, p, s)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("renewed in time", func(t *testing.T) {
		s := s
		s.Secrets = map[string]*unstructured.Unstructured{"serving": secret}
		s.Now = now.AddDate(3, 0, 0)
		renewed := activation(t, p, s)
		newBundle, newSecret := text(t, renewed[1], append(client, "caBundle")...), renewed[5]
		if newBundle == bundle {
			t.Fatal("not renewed")
		}
		if err := handshake(t, newSecret, newBundle, serviceHost, s.Now.AddDate(4, 0, 0)); err != nil {
			t.Error(err)
		}
		if err := handshake(t, secret, newBundle, serviceHost, s.Now); err != nil {
			t.Errorf("pods that still serve the old certificate: %v", err)
		}
		annotation := []string{"spec", "template", "metadata", "annotations", "solutionctl.io/certificate"}
		if text(t, renewed[3], annotation...) == text(t, objects[3], annotation...) {
			t.Error("the pods are not started again")
		}
		s.Secrets["serving"], s.Now = newSecret, s.Now.AddDate(3, 0, 0)
		third := decoded(t, text(t, activation(t, p, s)[1], append(client, "caBundle")...))
		if n := strings.Count(string(third), "BEGIN CERTIFICATE"); n != 2 {
			t.Errorf("%d authorities are trusted, want the new one and the one before", n)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		broken := secret.DeepCopy()
		_ = unstructured.SetNestedField(broken.Object, "bm9uc2Vuc2U=", "data", "tls.key")
		s := s
		s.Secrets = map[string]*unstructured.Unstructured{"serving": broken}
		again := activation(t, p, s)
		if err := handshake(t, again[5], text(t, again[1], append(client, "caBundle")...), serviceHost, now); err != nil {
			t.Error(err)
		}
	})
	t.Run("issued by another authority", func(t *testing.T) {
		given := secret.DeepCopy()
		given.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "cert-manager"})
		s := s
		s.Secrets = map[string]*unstructured.Unstructured{"serving": given}
		objects := activation(t, p, s)
		if diff := cmp.Diff(want[:5], names(objects)); diff != "" {
			t.Error(diff)
		}
		if text(t, objects[1], append(client, "caBundle")...) != bundle {
			t.Error("the API server does not trust the given certificate")
		}
	})
}

func TestOperatorWebhook(t *testing.T) {
	p, s := newPayload(t, map[string]string{}), settings()
	if names, err := render.EnvironmentSecrets(p, s); err != nil || len(names) != 0 {
		t.Errorf("without a webhook: %v, %v", names, err)
	}
	s.Webhook = true
	wanted, err := render.EnvironmentSecrets(p, s)
	if diff := cmp.Diff([]string{"db-cert"}, wanted); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	objects, err := render.Environment(p, s)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, objects)
	secret := find(t, objects, "Secret", "db-cert")
	if err = handshake(t, secret, text(t, secret, "data", "ca.crt"), "any-service.prod.svc.cluster.local", now); err != nil {
		t.Error(err)
	}
	pod, _, _ := unstructured.NestedMap(find(t, objects, "Deployment", "db-operator").Object, "spec", "template", "spec")
	mounts := pod["containers"].([]any)[0].(map[string]any)["volumeMounts"].([]any)
	if diff := cmp.Diff(map[string]any{"name": "cert", "mountPath": "/cert", "readOnly": true}, mounts[1]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"name": "cert", "secret": map[string]any{"secretName": "db-cert"}}, pod["volumes"].([]any)[1]); diff != "" {
		t.Error(diff)
	}

	secret = secret.DeepCopy()
	s.Secrets = map[string]*unstructured.Unstructured{"db-cert": secret}
	again, err := render.Environment(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects, again); diff != "" {
		t.Errorf("rendering again differs:\n%s", diff)
	}
	secret.SetLabels(nil)
	foreign, err := render.Environment(p, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range foreign {
		if o.GetKind() == "Secret" {
			t.Error("a Secret that somebody made is replaced")
		}
	}
}

func TestWebhookForms(t *testing.T) {
	for name, test := range map[string]struct {
		change  []string
		secrets []string // that were made
		code    report.Code
		message string
	}{
		"the usual name among several": {
			change:  []string{"{name: config,", "{name: x, projected: {sources: [{secret: {name: db-cert}}]}}, {name: config,"},
			secrets: []string{"db-cert"},
		},
		"several Secrets": {
			change: []string{"{name: config,", "{name: x, secret: {secretName: other}}, {name: config,"},
			code:   report.Invalid, message: "webhook.yaml:1: Service/db-webhook: its pods mount several Secrets (other, serving)",
		},
		"the archive has the Secret": {
			change: []string{"---\napiVersion: admission", "---\napiVersion: v1\nkind: Secret\nmetadata: {name: serving}\n---\napiVersion: admission"},
		},
		"cert-manager": {
			change: []string{"---\napiVersion: admission", "---\napiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c}\nspec: {secretName: serving}\n---\napiVersion: admission"},
		},
		"no Secret":  {change: []string{"{name: cert, secret: {secretName: serving}}, ", ""}},
		"no Service": {change: []string{"kind: Service\n", "kind: Endpoints\n"}, code: report.Invalid, message: "dbs_crd.yaml:12: CustomResourceDefinition/dbs.db.example: the Service db-webhook is not in operator/cluster"},
		"URL":        {change: []string{"{service: {namespace: somewhere, name: db-webhook, path: /convert}}", "{url: 'https://x'}", "{service: {namespace: somewhere, name: db-webhook}}", "{url: 'https://x'}"}},
		"every Pod":  {change: []string{"apiGroups: [db.example]", "apiGroups: ['']"}, secrets: []string{"serving"}},
		"a namespace of its own": {
			change: []string{"kind: ValidatingWebhookConfiguration", "kind: Namespace", "admissionregistration.k8s.io/v1", "v1"},
			code:   report.Refused, message: "Namespace/db: a Solution cannot bring an object of this kind",
		},
		"image that is not there": {change: []string{"db-operator:1.0.0", "db-webhook:1.0.0"}, code: report.Invalid, message: "image db-webhook:1.0.0 is not in the archive"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render.Activation(webhookPayload(t, test.change...), settings())
			if test.code != "" {
				if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.message) {
					t.Errorf("got %s: %v", report.CodeOf(err), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var made []string
			for _, o := range objects {
				if _, isOurs := o.GetLabels()["app"]; isOurs && o.GetKind() == "Secret" {
					made = append(made, o.GetName())
				}
			}
			if diff := cmp.Diff(test.secrets, made); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClusterRolesOfTheActivation(t *testing.T) {
	binding := `---
apiVersion: rbac.authorization.k8s.io/v1
kind: %KIND%
metadata: {name: db}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %ROLE%}
subjects: [{kind: ServiceAccount, name: db, namespace: elsewhere}, {kind: Group, apiGroup: rbac.authorization.k8s.io, name: admins}]
`
	bindingOf := func(kind, role string) string {
		return strings.NewReplacer("%KIND%", kind, "%ROLE%", role).Replace(binding)
	}
	p := newPayload(t, map[string]string{"operator/cluster/rbac.yaml": roleOf("ClusterRole", "db") + bindingOf("ClusterRoleBinding", "db") +
		bindingOf("RoleBinding", "db") + strings.Replace(bindingOf("ClusterRoleBinding", "system:auth-delegator"), "name: db}", "name: delegate}", 1)})
	objects := activation(t, p, settings())
	want := []string{
		"Namespace /db-system", "ClusterRole /solutionctl:db-system:db:db", "ClusterRoleBinding /solutionctl:db-system:db:db",
		"RoleBinding db-system/db", "ClusterRoleBinding /solutionctl:db-system:db:delegate",
	}
	if diff := cmp.Diff(want, names(objects)); diff != "" {
		t.Fatal(diff)
	}
	for i, role := range map[int]string{2: want[1][13:], 3: want[1][13:], 4: "system:auth-delegator"} {
		if got := text(t, objects[i], "roleRef", "name"); got != role {
			t.Errorf("%s is for role %s, want %s", want[i], got, role)
		}
		subjects, _, _ := unstructured.NestedSlice(objects[i].Object, "subjects")
		if got := subjects[0].(map[string]any)["namespace"]; got != "db-system" {
			t.Errorf("%s is for the namespace %s", want[i], got)
		}
		if _, has := subjects[1].(map[string]any)["namespace"]; has {
			t.Errorf("%s: a group has a namespace", want[i])
		}
	}
}

// TestAuthorityKeyIsGone: nothing that is stored can sign another certificate.
func TestAuthorityKeyIsGone(t *testing.T) {
	s := settings()
	s.Webhook = true
	objects, err := render.Environment(newPayload(t, map[string]string{}), s)
	if err != nil {
		t.Fatal(err)
	}
	secret := find(t, objects, "Secret", "db-cert")
	block, _ := pem.Decode(decoded(t, text(t, secret, "data", "ca.crt")))
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key := decoded(t, text(t, secret, "data", "tls.key"))
	if _, err := tls.X509KeyPair(pem.EncodeToMemory(block), key); err == nil {
		t.Error("the Secret holds the key of the authority")
	}
	if diff := cmp.Diff([]string{".prod.svc", ".prod.svc.cluster.local"}, authority.PermittedDNSDomains); diff != "" {
		t.Error(diff)
	}
}

// TestConversionByComponent: a CustomResourceDefinition that a cluster component converts is applied as it is. The component serves its own
// certificate and writes the authority.
func TestConversionByComponent(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: db-webhook}\nspec: {selector: {app: a}, ports: [{port: 443}]}\n"
	for name, test := range map[string]struct {
		component, file string
		message         string
	}{
		"manifests":             {"{name: db, manifests: components/db.yaml, scope: cluster, namespace: somewhere}", service, ""},
		"chart":                 {"{name: db, chart: charts/db.tgz, scope: cluster, namespace: somewhere}", service, ""},
		"another namespace":     {"{name: db, manifests: components/db.yaml, scope: cluster, namespace: other}", service, "the Service db-webhook is not in operator/cluster"},
		"another Service":       {"{name: db, manifests: components/db.yaml, scope: cluster, namespace: somewhere}", configMap, "the Service db-webhook is not in operator/cluster"},
		"a component elsewhere": {"{name: db, manifests: components/db.yaml}", service, "the Service db-webhook is not in operator/cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPayload(t, map[string]string{
				"manifest.yaml":                     strings.Replace(dbManifest, "1.0.0}", "1.0.0, components: ["+test.component+"]}", 1),
				"operator/deploy/crds/dbs_crd.yaml": convertedCRD, "components/db.yaml": test.file, "charts/db.tgz": chartOf(t, nil),
			})
			objects, err := render.Activation(p, settings())
			if test.message != "" {
				if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.message) {
					t.Fatalf("got %v, want %q", err, test.message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" })
			if got := text(t, objects[i], "spec", "conversion", "webhook", "clientConfig", "service", "namespace"); got != "somewhere" {
				t.Errorf("the API server looks for the webhook in namespace %s", got)
			}
		})
	}
}

// TestConversionByChart: a CustomResourceDefinition among the templates of a chart names the namespace that the chart is deployed in.
func TestConversionByChart(t *testing.T) {
	p := newPayload(t, map[string]string{
		"manifest.yaml": strings.Replace(dbManifest, "1.0.0}", "1.0.0, components: [{name: db, chart: charts/db.tgz, scope: cluster}]}", 1),
		"charts/db.tgz": chartOf(t, map[string]string{"templates/crd.yaml": strings.Replace(convertedCRD, "somewhere", "{{ .Release.Namespace }}", 1)}),
	})
	objects := activation(t, p, settings())
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" })
	if got := text(t, objects[i], "spec", "conversion", "webhook", "clientConfig", "service", "namespace"); got != "db-system" {
		t.Errorf("the API server looks for the webhook in namespace %s", got)
	}
}
