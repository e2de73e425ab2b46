package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Annotations of the operator's pods: their digests of configuration and certificate restart the pods on a change.
const (
	annotationConfig      = "solutionctl.io/configuration"
	annotationCertificate = "solutionctl.io/certificate"
)

// Environment returns the objects of a Solution in the namespace of an environment: its operator with account, roles
// and configuration, the list of its kinds, its user interface, monitors and alerting rules.
func Environment(p *Payload, s Settings) ([]*unstructured.Unstructured, error) {
	return renderedBy(renderEnvironment(p, s))
}

func renderEnvironment(p *Payload, s Settings) (*renderer, error) {
	r, err := newRenderer(p, s)
	if err != nil {
		return nil, err
	}
	if s.Namespace == "" {
		return nil, report.Errorf(report.Usage, "render %s: no namespace is given", p.Solution.ID())
	}
	for _, part := range []func() error{r.operator, r.applications, r.ui, r.monitors} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// EnvironmentSecrets names the Secrets in Settings.Namespace whose present content [Environment] wants to know.
func EnvironmentSecrets(p *Payload, s Settings) ([]string, error) {
	if !p.hasOperator() {
		return nil, nil
	}
	var names []string
	if s.Webhook {
		names = append(names, certificateSecret(p))
	}
	if m := p.Solution.OperatorMetrics(); m != nil && m.Scheme == schema.SchemeHTTPS {
		names = append(names, metricsSecret(p))
	}
	return names, nil
}

// certificateSecret is the name of the Secret that MetalK8s mounts into an operator with a webhook.
func certificateSecret(p *Payload) string { return p.Solution.Metadata.Name + "-cert" }

func (r *renderer) operatorName() string { return r.name + "-operator" }

// operator is one of the operators of a Solution: its own, or a component.
type operator struct {
	*renderer
	name     string // of the Deployment, and of the account
	image    schema.ImageRef
	setting  string   // where the manifest names the image
	roleFile string   // its rights, which need not be there
	owner    []string // whose ClusterRoles these are, in their names
	wide     bool     // it asks for its ClusterRoles in the whole cluster
	webhook  bool
	metrics  *schema.OperatorMetrics // nil: no metrics
	start    map[string]any          // how its container is started
}

const configArgument = "--config=/etc/config/operator.yaml"

func (r *renderer) operator() error {
	if !r.p.hasOperator() {
		return nil
	}
	name := r.operatorName()
	return (&operator{
		renderer: r, name: name, image: r.p.Solution.OperatorImage(), setting: "spec.operator.image", roleFile: archive.RoleFile,
		owner: []string{r.name}, webhook: r.s.Webhook, metrics: r.p.Solution.OperatorMetrics(),
		wide:  r.p.Solution.Spec.Operator != nil && r.p.Solution.Spec.Operator.ClusterWide,
		start: map[string]any{"command": []any{name, configArgument}},
	}).render()
}

func (r *operator) render() error {
	image, ok := r.p.Image(r.image)
	if !ok {
		return report.Errorf(report.Invalid, "the image of the operator, %s, is not in the archive", r.image).
			WithHint("name it in %s of %s; the archive has: %s", r.setting, archive.ManifestFile, refList(r.p.Images))
	}
	if err := r.add(generated, r.make("v1", "ServiceAccount", r.name, nil)); err != nil {
		return err
	}
	if err := r.roles(); err != nil {
		return err
	}
	config, err := r.operatorConfig()
	if err != nil {
		return err
	}
	data := map[string]any{"operator.yaml": string(config)}
	if err := r.add(generated, r.make("v1", "ConfigMap", r.name+"-config", map[string]any{"data": data})); err != nil {
		return err
	}
	annotations := map[string]any{annotationConfig: digest(config)}
	if r.webhook {
		if err := r.webhookCertificate(annotations); err != nil {
			return err
		}
	}
	if r.metrics != nil {
		if err := r.metricsObjects(); err != nil {
			return err
		}
	}
	return r.add(generated, r.deployment(image, annotations))
}

// make makes an object of the operator in the namespace of the environment.
func (r *operator) make(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	return newKubernetesObject(apiVersion, kind, r.s.Namespace, name, r.labels(r.name, "operator"), content)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// roles renders role.yaml and the bindings of its roles to the operator's account. A ClusterRole gets a name that is
// unique to the namespace; it is bound in the namespace only, unless the manifest requests more.
func (r *operator) roles() error {
	if _, ok := r.p.files[r.roleFile]; !ok {
		return nil
	}
	roles, err := r.p.read(r.roleFile, "")
	if err != nil {
		return err
	}
	var bindings []*unstructured.Unstructured
	for _, o := range roles {
		if !o.is(rbacGroup, "Role", "ClusterRole") {
			return o.refuse(report.Invalid, []string{"kind"}, "only Role and ClusterRole may be in this file").
				WithHint("take it out of the file: solutionctl makes the account and the bindings itself")
		}
		bare, kind := o.GetName(), "RoleBinding"
		if r.wide && o.GetKind() == "ClusterRole" {
			kind = "ClusterRoleBinding"
		}
		r.label(o.Unstructured)
		if o.GetKind() == "Role" {
			o.SetNamespace(r.s.Namespace)
			o.SetName(r.roleName(bare))
		} else {
			unstructured.RemoveNestedField(o.Object, "metadata", "namespace")
			o.SetName(clusterRoleName(r.s.Namespace, slices.Concat(r.owner, []string{bare})...))
		}
		binding := r.bindingName(o.GetKind(), bare)
		if kind == "ClusterRoleBinding" {
			binding = o.GetName()
		}
		if err := r.add(r.roleFile, o.Unstructured); err != nil {
			return err
		}
		bindings = append(bindings, r.binding(kind, binding, o.GetKind(), o.GetName()))
	}
	return r.add(r.roleFile, bindings...)
}

const (
	rbacGroup      = "rbac.authorization.k8s.io"
	rbacAPIVersion = rbacGroup + "/v1"
)

// roleName is the name of a Role. The Solution's own operator keeps that of the archive, as MetalK8s does; components, whose
// authors know nothing of each other, have names of their own.
func (r *operator) roleName(bare string) string {
	if len(r.owner) == 1 {
		return bare
	}
	return shorten(r.name+":"+bare, 253)
}

func (r *operator) bindingName(kind, bare string) string {
	kind = strings.ToLower(kind)
	if len(r.owner) == 1 {
		return shorten(r.name+"-"+kind+"-"+bare, 63)
	}
	return shorten(strings.Join([]string{r.name, kind, bare}, ":"), 253)
}

// clusterRoleName is the name of a ClusterRole. It contains its owner: the Solution and, for a component, its name.
func clusterRoleName(namespace string, owner ...string) string {
	return shorten(strings.Join(slices.Concat([]string{"solutionctl", namespace}, owner), ":"), 253)
}

// label adds the labels of an object that is made here to one of the archive.
func (r *operator) label(o *unstructured.Unstructured) {
	for key, value := range r.labels(r.name, "operator") {
		setLabel(o, key, value.(string))
	}
}

func (r *operator) binding(kind, name, roleKind, roleName string) *unstructured.Unstructured {
	o := r.make(rbacAPIVersion, kind, name, map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": roleKind, "name": roleName},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": r.name, "namespace": r.s.Namespace}},
	})
	if kind == "ClusterRoleBinding" {
		unstructured.RemoveNestedField(o.Object, "metadata", "namespace")
	}
	return o
}

// operatorConfig has the images of every imported version, so that the operator can upgrade its instances.
func (r *renderer) operatorConfig() ([]byte, error) {
	config := schema.OperatorConfig{APIVersion: schema.APIVersion, Kind: schema.KindOperatorConfig, Repositories: map[string][]schema.Repository{}}
	for _, p := range append(slices.Clone(r.s.Imported), r.p) {
		if p.Solution.Metadata.Name != r.name {
			return nil, report.Errorf(report.Usage, "render %s: %s is another Solution", r.p.Solution.ID(), p.Solution.ID())
		}
		config.Repositories[p.Solution.Spec.Version] = []schema.Repository{{Endpoint: r.repository(p), Images: p.Solution.Spec.Images}}
	}
	return config.Marshal()
}

// webhookCertificate renders the Secret with the certificate of the operator's webhook, unless another owner manages
// it.
func (r *renderer) webhookCertificate(annotations map[string]any) error {
	secret, err := r.certificate(certificateSecret(r.p), r.s.Namespace)
	if err != nil || secret == nil {
		return err
	}
	annotations[annotationCertificate] = certificateDigest(secret)
	return r.add(generated, secret)
}

func (r *operator) deployment(image Image, annotations map[string]any) *unstructured.Unstructured {
	name := r.name
	mounts := []any{map[string]any{"name": "operator-config", "mountPath": "/etc/config"}}
	volumes := []any{map[string]any{"name": "operator-config", "configMap": map[string]any{"name": name + "-config"}}}
	if r.webhook {
		mounts = append(mounts, map[string]any{"name": "cert", "mountPath": "/cert", "readOnly": true})
		volumes = append(volumes, map[string]any{"name": "cert", "secret": map[string]any{"secretName": certificateSecret(r.p)}})
	}
	field := func(variable, path string) any {
		return map[string]any{"name": variable, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": path}}}
	}
	container := map[string]any{
		"name":            name,
		"image":           r.reference(image),
		"imagePullPolicy": "IfNotPresent",
		"env": []any{
			field("WATCH_NAMESPACE", "metadata.namespace"),
			field("POD_NAME", "metadata.name"),
			map[string]any{"name": "OPERATOR_NAME", "value": name},
		},
		// The last log lines explain why it terminated.
		"terminationMessagePolicy": "FallbackToLogsOnError",
	}
	maps.Copy(container, r.start)
	if r.metrics != nil {
		moreMounts, moreVolumes := r.serveMetrics(container)
		mounts, volumes = append(mounts, moreMounts...), append(volumes, moreVolumes...)
	}
	container["volumeMounts"] = mounts
	return r.make("apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{
		"replicas": int64(1),
		// There is no probe of an operator. One that ends right after its start must not count as one that works.
		"minReadySeconds": int64(5),
		"selector":        map[string]any{"matchLabels": map[string]any{"app": name}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": r.labels(name, "operator"), "annotations": annotations},
			"spec": map[string]any{
				"serviceAccountName": name,
				"containers":         []any{container},
				"volumes":            volumes,
			},
		},
	}})
}

// monitors renders the objects for Prometheus in each namespace.
func (r *renderer) monitors() error {
	objects, err := r.p.objectsIn(r.p.manifests("monitoring"), "")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if isClusterMonitoring(o) {
			continue
		}
		if err := r.place(o); err != nil {
			return err
		}
	}
	return nil
}

// place puts an object of the archive into the namespace of the environment.
func (r *renderer) place(o object) error {
	if r.isClusterScoped(o) {
		return o.refuse(report.Refused, []string{"kind"}, "an environment cannot have an object of the whole cluster").
			WithHint("put it into operator/cluster, which the activation applies once")
	}
	moveTo(o.Unstructured, r.s.Namespace)
	r.mark(o.Unstructured)
	if err := r.scopeRules(o); err != nil {
		return err
	}
	return r.add(o.document.File(), r.monitored(o.Unstructured))
}

// isClusterMonitoring reports whether an object exists once for the cluster, and not in each namespace: dashboards, and
// rules with that annotation.
func isClusterMonitoring(o object) bool {
	return isClusterRule(o) || o.group() == "grafana.integreatly.org" || o.is("", "ConfigMap")
}

// environmentName is the name of the environment, for people.
func (r *renderer) environmentName() string { return cmp.Or(r.s.Environment, r.s.Namespace) }
