package render

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Activation returns the objects of an active version: its CustomResourceDefinitions, the cluster-level parts of
// operator/cluster, dashboards, and the alerting rules about the cluster. Namespaced objects are in [SystemNamespace],
// which is included when it is needed.
func Activation(p *Payload, s Settings) ([]*unstructured.Unstructured, error) {
	return renderedBy(renderActivation(p, s))
}

func renderActivation(p *Payload, s Settings) (*renderer, error) {
	s.Namespace = SystemNamespace(p.Solution.Metadata.Name)
	r, err := newRenderer(p, s)
	if err != nil {
		return nil, err
	}
	for i, crd := range r.crds {
		crd.Unstructured = crd.DeepCopy()
		r.crds[i] = crd
		r.mark(crd.Unstructured)
		if err = r.add(crd.document.File(), crd.Unstructured); err != nil {
			return nil, err
		}
	}
	for _, part := range []func() error{r.cluster, r.rules, r.dashboards} {
		if err = part(); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(r.objects, func(o *unstructured.Unstructured) bool { return o.GetNamespace() == s.Namespace }) || r.hasClusterComponents() {
		s.Creates = append([]string{s.Namespace}, s.Creates...)
	}
	labels, err := r.podSecurityLabels()
	if err != nil {
		return nil, err
	}
	for i, name := range s.Creates {
		of := map[string]any{labelPartOf: r.name, labelManagedBy: managedBy}
		maps.Copy(of, labels[name])
		namespace := newKubernetesObject("v1", namespaceKind, "", name, of, nil)
		r.objects = slices.Insert(r.objects, i, namespace)
	}
	return r, nil
}

// hasClusterComponents reports whether cluster components have objects in the namespace of the Solution.
func (r *renderer) hasClusterComponents() bool {
	return slices.ContainsFunc(r.p.Solution.Spec.Components, func(c schema.Component) bool {
		return c.Scope == schema.ScopeCluster && (ComponentNamespace(r.p.Solution, &c) == r.s.Namespace || slices.Contains(c.Namespaces, r.s.Namespace))
	})
}

// ActivationSecrets names the Secrets in [SystemNamespace] whose present content [Activation] wants to know.
func ActivationSecrets(p *Payload, s Settings) ([]string, error) {
	r, err := newRenderer(p, s)
	if err != nil {
		return nil, err
	}
	parts, err := r.clusterParts()
	if err != nil {
		return nil, err
	}
	return r.newWebhooks(parts).secrets()
}

// clusterParts reads operator/cluster, and that of the additional operators.
func (r *renderer) clusterParts() ([]object, error) {
	dirs := []string{"operator/cluster"}
	for _, c := range r.p.Solution.Spec.Components {
		if c.Operator != "" {
			dirs = append(dirs, path.Join(c.Operator, "cluster"))
		}
	}
	slices.Sort(dirs[1:])
	var parts []object
	for _, dir := range slices.Compact(dirs) {
		found, err := r.read(dir)
		if err != nil {
			return nil, err
		}
		parts = append(parts, found...)
	}
	return parts, nil
}

// cluster renders the objects that the operators need once per cluster.
func (r *renderer) cluster() error {
	parts, err := r.clusterParts()
	if err != nil {
		return err
	}
	for _, o := range parts {
		if !r.isClusterScoped(o) {
			moveTo(o.Unstructured, r.s.Namespace)
		} else if err = r.placeInCluster(o); err != nil {
			return err
		}
		r.mark(o.Unstructured)
	}
	r.renameClusterRoles(parts)
	secrets, err := r.newWebhooks(parts).serve()
	if err != nil {
		return err
	}
	for _, o := range parts {
		if err := r.add(o.document.File(), r.monitored(o.Unstructured)); err != nil {
			return err
		}
	}
	return r.add(generated, secrets...)
}

// placeInCluster puts a cluster-wide object into its form, and refuses kinds that a Solution cannot bring. Its powers
// are checked by the plan.
func (r *renderer) placeInCluster(o object) error {
	unstructured.RemoveNestedField(o.Object, "metadata", "namespace")
	switch {
	case o.is(rbacGroup, "ClusterRole", "ClusterRoleBinding"):
		moveSubjects(o.Unstructured, r.s.Namespace, r.namespaces...)
	case o.is("admissionregistration.k8s.io", clusterScoped["admissionregistration.k8s.io"]...):
	case o.is("apiregistration.k8s.io", "APIService"):
	case o.is("apiextensions.k8s.io", "CustomResourceDefinition"):
	case o.is("scheduling.k8s.io", "PriorityClass"), o.is("storage.k8s.io", "StorageClass"), o.is("networking.k8s.io", "IngressClass"):
	case clusterScoped[o.group()] != nil:
		return o.refuse(report.Refused, []string{"kind"}, "a Solution cannot bring an object of this kind").
			WithHint("take it out of the archive, or create it by hand")
	}
	return nil // a custom resource of the archive
}

// listOf returns the objects of a list.
func listOf(list any) []map[string]any {
	entries, _ := list.([]any)
	var found []map[string]any
	for _, entry := range entries {
		if m, ok := entry.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}

// renameClusterRoles gives ClusterRoles and their bindings names that no other Solution uses, and no other component.
func (r *renderer) renameClusterRoles(parts []object, component ...string) {
	renamed := map[string]string{}
	for _, o := range parts {
		if o.is(rbacGroup, "ClusterRole", "ClusterRoleBinding") {
			name := clusterRoleName(r.s.Namespace, slices.Concat([]string{r.name}, component, []string{o.GetName()})...)
			if o.GetKind() == "ClusterRole" {
				renamed[o.GetName()] = name
			}
			o.SetName(name)
		}
	}
	for _, o := range parts {
		if !o.is(rbacGroup, "ClusterRoleBinding", "RoleBinding") {
			continue
		}
		reference, _, _ := unstructured.NestedMap(o.Object, "roleRef")
		if name, ok := reference["name"].(string); ok && reference["kind"] == "ClusterRole" && renamed[name] != "" {
			reference["name"] = renamed[name]
			o.Object["roleRef"] = reference
		}
	}
}

// rules renders the rules of monitoring/ that exist once per cluster.
func (r *renderer) rules() error {
	objects, err := r.p.objectsIn(r.p.manifests("monitoring"), "")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if !isClusterMonitoring(o) {
			continue
		}
		moveTo(o.Unstructured, r.s.Namespace)
		r.mark(o.Unstructured)
		if isClusterRule(o) {
			r.labelClusterRules(o)
		}
		if err := r.add(o.document.File(), r.monitored(o.Unstructured)); err != nil {
			return err
		}
	}
	return nil
}

// maxDashboard is the greatest size of a dashboard, in bytes, that leaves a ConfigMap some room for the rest.
const maxDashboard = 1<<20 - 4096

// dashboards renders a ConfigMap for each dashboard, with the labels by which the sidecars of Grafana's charts, and of the
// site, find it.
func (r *renderer) dashboards() error {
	for _, file := range r.p.below("monitoring/dashboards") {
		if path.Ext(file) != ".json" {
			continue
		}
		data := r.p.files[file]
		if !json.Valid(data) {
			return report.Errorf(report.Invalid, "%s is not JSON", file).WithHint("check the archive with: %s", report.Run("lint"))
		}
		if len(data) > maxDashboard {
			return report.Errorf(report.Invalid, "%s has %d bytes, more than a ConfigMap holds", file, len(data)).WithHint("take the dashboard apart")
		}
		stem := strings.TrimSuffix(strings.TrimPrefix(file, "monitoring/dashboards/"), ".json")
		name := shorten(r.name+"-dashboard-"+objectName(stem), 253)
		labels := r.labels(name, "monitoring")
		delete(labels, "app")
		delete(labels, labelInstance)
		labels[labelName] = r.name
		labels[schema.LabelDashboard] = "1"
		data = withUID(data, shorten(r.name+"-"+objectName(stem), maxUID))
		content := map[string]any{"data": map[string]any{name + ".json": string(data)}} // all sidecars write into one directory
		dashboard := newKubernetesObject("v1", "ConfigMap", cmp.Or(r.s.Monitoring.Dashboards.Namespace, r.s.Namespace), name, labels, content)
		if err := r.add(file, r.shown(dashboard)); err != nil {
			return err
		}
	}
	return nil
}

const maxUID = 40 // for Grafana

// withUID gives a dashboard that has no uid one that it keeps, so that links to it hold wherever it is deployed.
func withUID(data []byte, uid string) []byte {
	var dashboard map[string]json.RawMessage
	if err := json.Unmarshal(data, &dashboard); err != nil || dashboard == nil {
		return data // nothing that Grafana loads
	}
	switch string(dashboard["uid"]) {
	case "", "null", `""`:
		dashboard["uid"] = json.RawMessage(`"` + uid + `"`)
		data, _ = json.Marshal(dashboard) // it was JSON
	}
	return data
}

var notInNames = lazyregexp.New(`[^a-z0-9-]+`)

// objectName makes a part of a name of an object from a name of a file.
func objectName(s string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(s), "-"), "-")
}

// webhooks are the objects of operator/cluster by which the API server calls a Solution.
type webhooks struct {
	r     *renderer
	parts []object
}

func (r *renderer) newWebhooks(parts []object) *webhooks { return &webhooks{r, parts} }

// client is one webhook client configuration of an object.
type client struct {
	object
	path   []string
	config map[string]any // with service and caBundle
}

// clients returns all of them, in CustomResourceDefinitions, webhook configurations and APIServices, except in objects
// that have their authorities injected by another controller: with cert-manager, or by a cluster component that converts with its own Service.
func (w *webhooks) clients() []client {
	var clients []client
	add := func(o object, config any, path ...string) {
		c, _ := config.(map[string]any)
		if c["service"] != nil && o.GetAnnotations()["cert-manager.io/inject-ca-from"] == "" {
			clients = append(clients, client{o, path, c})
		}
	}
	for _, o := range slices.Concat(w.r.crds, w.parts) {
		switch {
		case o.is("apiextensions.k8s.io", "CustomResourceDefinition"):
			conversion, _, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook", "clientConfig")
			if !w.r.isComponentService(conversion["service"]) {
				config, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig")
				add(o, config, "spec", "conversion", "webhook", "clientConfig")
			}
		case o.is("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
			for i, webhook := range listOf(o.Object["webhooks"]) {
				add(o, webhook["clientConfig"], "webhooks", index(i), "clientConfig")
			}
		case o.is("apiregistration.k8s.io", "APIService"):
			add(o, o.Object["spec"], "spec")
		}
	}
	return clients
}

// isComponentService reports whether a Service that a webhook names is in the manifests of a cluster component. One in a chart, whose objects
// depend on values, is recognised by the namespace that the component has for itself.
func (r *renderer) isComponentService(reference any) bool {
	service, _ := reference.(map[string]any)
	return slices.ContainsFunc(r.p.Solution.Spec.Components, func(c schema.Component) bool {
		if c.Scope != schema.ScopeCluster || ComponentNamespace(r.p.Solution, &c) != service["namespace"] {
			return false
		}
		if c.Manifests == "" {
			return c.Chart != ""
		}
		objects, err := r.componentFiles(&c)
		return err == nil && slices.ContainsFunc(objects, func(o object) bool { return o.is("", "Service") && o.GetName() == service["name"] })
	})
}

// secrets returns the names of the Secrets that the webhooks are served with, sorted.
func (w *webhooks) secrets() ([]string, error) {
	var names []string
	for _, c := range w.clients() {
		name, err := w.secretOf(c)
		if err != nil {
			return nil, err
		}
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// serve points every webhook at its Service in the namespace, creates the certificates that no other object provides,
// and sets their authority in the client configurations.
func (w *webhooks) serve() ([]*unstructured.Unstructured, error) {
	made := map[string]*unstructured.Unstructured{}
	var secrets []*unstructured.Unstructured
	for _, c := range w.clients() {
		name, err := w.secretOf(c)
		if err != nil {
			return nil, err
		}
		c.config["service"].(map[string]any)["namespace"] = w.r.s.Namespace
		if name == "" {
			continue
		}
		if _, done := made[name]; !done {
			secret, err := w.r.certificate(name, w.r.s.Namespace)
			if err != nil {
				return nil, err
			}
			made[name] = secret
			if secret != nil {
				secrets = append(secrets, secret)
				w.restartWith(name, certificateDigest(secret))
			}
		}
		secret := made[name]
		if secret == nil {
			secret = w.r.s.Secrets[name] // given
		}
		if authority := secretData(secret)[keyAuthority]; len(authority) > 0 {
			c.config[caBundle] = base64.StdEncoding.EncodeToString(authority)
		}
	}
	return secrets, nil
}

// restartWith makes the pods that mount a Secret start again when it changes.
func (w *webhooks) restartWith(secret, digest string) {
	for _, o := range w.parts {
		if slices.Contains(mountedSecrets(o), secret) {
			pods.Annotate(o.Object, annotationCertificate, digest)
		}
	}
}

// secretOf returns the name of the Secret whose certificate a webhook is served with: the one that the pods behind its
// Service mount and that the archive does not have itself; "" when there is none.
func (w *webhooks) secretOf(c client) (string, error) {
	name, _, _ := unstructured.NestedString(c.config, "service", "name")
	service := slices.IndexFunc(w.parts, func(o object) bool { return o.is("", "Service") && o.GetName() == name })
	if service < 0 {
		return "", c.refuse(report.Invalid, append(slices.Clone(c.path), "service"), "the Service %s is not in operator/cluster", name).
			WithHint("put the Service and the Deployment of the webhook into operator/cluster")
	}
	selector, _, _ := unstructured.NestedMap(w.parts[service].Object, "spec", "selector")
	var mounted []string
	for _, o := range w.parts {
		if len(selector) > 0 && subset(selector, pods.Labels(o.Object)) {
			mounted = append(mounted, mountedSecrets(o)...)
		}
	}
	mounted = slices.DeleteFunc(mounted, w.isGiven)
	slices.Sort(mounted)
	mounted = slices.Compact(mounted)
	if usual := certificateSecret(w.r.p); slices.Contains(mounted, usual) {
		return usual, nil
	}
	switch len(mounted) {
	case 0:
		return "", nil
	case 1:
		return mounted[0], nil
	}
	return "", w.parts[service].refuse(report.Invalid, nil, "its pods mount several Secrets (%s): which one holds the certificate?", strings.Join(mounted, ", ")).
		WithHint("name it %s", certificateSecret(w.r.p))
}

// isGiven reports whether the archive has the Secret, or an object that creates it.
func (w *webhooks) isGiven(secret string) bool {
	return slices.ContainsFunc(w.parts, func(o object) bool {
		if o.is("cert-manager.io", "Certificate") {
			name, _, _ := unstructured.NestedString(o.Object, "spec", "secretName")
			return name == secret
		}
		return o.is("", "Secret") && o.GetName() == secret
	})
}

// mountedSecrets lists the Secrets that the volumes of a workload's pods are made of.
func mountedSecrets(o object) []string {
	var names []string
	for _, volume := range listOf(pods.Spec(o.Object)["volumes"]) {
		if name, _, _ := unstructured.NestedString(volume, "secret", "secretName"); name != "" {
			names = append(names, name)
		}
		sources, _, _ := unstructured.NestedSlice(volume, "projected", "sources")
		for _, source := range listOf(sources) {
			if name, _, _ := unstructured.NestedString(source, "secret", "name"); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func subset(wanted, have map[string]any) bool {
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}
