package powers

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// object judges an object by itself, independently of its bindings.
func (j *judgement) object(o Object) {
	j.elsewhere(o)
	j.owners(o)
	j.copies(o)
	j.refers(o)
	j.setting(o)
	j.pods(o)
	switch group := groupOf(o); group {
	case "":
		j.core(o)
	case admissionGroup:
		j.admission(o)
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		j.api(o)
	case "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io", "flowcontrol.apiserver.k8s.io":
		j.classes(o)
	case "networking.k8s.io", "discovery.k8s.io", "policy.networking.k8s.io", "gateway.networking.k8s.io", "route.openshift.io",
		"cilium.io", "crd.projectcalico.org", "projectcalico.org":
		j.network(o)
	case "certificates.k8s.io":
		j.place(o, "").add(schema.PowerIssueIdentities, schema.ReachCluster, "change whom the cluster trusts ("+o.GetKind()+")", o.GetKind())
	case "cert-manager.io":
		j.certificate(o)
	case "monitoring.coreos.com":
		j.monitoring(o)
	case "snapshot.storage.k8s.io":
		j.snapshots(o)
	case "apps":
		for i, template := range nested(o.Object, "spec", "volumeClaimTemplates") {
			j.claim(o, nestedMap(template, "spec"), indexed("spec.volumeClaimTemplates", i)+".spec")
		}
	case "policy", "autoscaling", "autoscaling.k8s.io":
		j.shared(o)
	case "resource.k8s.io":
		j.devices(o)
	case rbacGroup:
		j.replaces(o)
	default:
		j.foreign(o)
	}
}

// elsewhere judges where an object is.
func (j *judgement) elsewhere(o Object) {
	namespace, field := o.GetNamespace(), "metadata.namespace"
	if isKind(o, "", "Namespace") {
		namespace, field = o.GetName(), "metadata.name"
		j.namespaceLabels(o)
		j.place(o, "metadata.annotations").annotated(o.GetAnnotations()) // for each pod in it
	}
	if namespace == "" || j.own[namespace] {
		return
	}
	reach, whose := schema.ReachNamespaces, "which is not its own"
	if schema.IsSystemNamespace(namespace) {
		reach, whose = schema.ReachCluster, "which belongs to the cluster"
	}
	j.place(o, field).add(schema.PowerObjectsElsewhere, reach, fmt.Sprintf("have objects in namespace %s, %s", namespace, whose), namespace)
}

// namespaceLabels judges labels with which a namespace allows pods more than the level baseline does.
func (j *judgement) namespaceLabels(o Object) {
	const enforce, devices, gatekeeper = "pod-security.kubernetes.io/enforce", "resource.kubernetes.io/admin-access", "admission.gatekeeper.sh/ignore"
	has := o.GetLabels()
	allow := func(what, label string) {
		j.place(o, "metadata.labels").add(schema.PowerMarkNamespaces, schema.ReachNode, "allow "+what+" in namespace "+o.GetName(), label+"="+has[label])
	}
	if has[enforce] == "privileged" {
		allow("privileged pods", enforce)
	}
	if has[devices] == "true" {
		allow("the use of devices of others", devices)
	}
	if _, ok := has[gatekeeper]; ok {
		allow("what the policies of Gatekeeper refuse", gatekeeper)
	}
}

// core judges kinds of the core group.
func (j *judgement) core(o Object) {
	switch o.GetKind() {
	case "Service":
		j.service(o)
	case "Endpoints":
		j.place(o, "subsets").add(schema.PowerTakesTraffic, schema.ReachTraffic, "send traffic to addresses of its choice", "endpoints")
	case "Secret":
		j.secret(o)
	case "ConfigMap":
		if schema.IsSystemNamespace(o.GetNamespace()) && slices.Contains(identityMaps, o.GetName()) {
			j.place(o, "").add(schema.PowerIssueIdentities, schema.ReachCluster, "change whom the cluster trusts ("+o.GetName()+")", o.GetName())
		}
		j.dashboards(o)
	case "ServiceAccount":
		if o.GetName() == "default" && len(nestedList(o.Object, "imagePullSecrets")) > 0 {
			j.place(o, "imagePullSecrets").add(schema.PowerDefaultForEveryone, schema.ReachEveryone,
				"change how every pod of namespace "+o.GetNamespace()+" without an account of its own pulls images", "imagePullSecrets")
		}
	case "LimitRange", "ResourceQuota":
		if o.GetNamespace() != j.owner.Solution+"-system" {
			j.place(o, "").add(schema.PowerDefaultForEveryone, schema.ReachEveryone, "set limits for every pod of namespace "+o.GetNamespace(), o.GetKind())
		}
	case "PersistentVolume":
		j.volume(o)
	case "PersistentVolumeClaim":
		j.claim(o, nestedMap(o.Object, "spec"), "spec")
		j.claimName(o)
	case "Node":
		j.place(o, "").add(schema.PowerControlNodes, schema.ReachNode, "control nodes and what runs on them", "Node")
	}
}

// secret judges Secrets that are a key to an account or to the cluster.
func (j *judgement) secret(o Object) {
	switch text(o, "type") {
	case "kubernetes.io/service-account-token":
		name := o.GetAnnotations()["kubernetes.io/service-account.name"]
		if account := o.GetNamespace() + "/" + name; !j.hasAccount(o.GetNamespace(), name) {
			j.place(o, "type").add(schema.PowerActAsOthers, schema.ReachCluster, "have the token of an account that the archive does not bring ("+account+")", account)
		}
	case "bootstrap.kubernetes.io/token":
		j.place(o, "type").add(schema.PowerIssueIdentities, schema.ReachCluster, "let nodes join the cluster", "token")
	}
}

// classes judges what has an effect on the whole cluster by being there.
func (j *judgement) classes(o Object) {
	switch o.GetKind() {
	case "StorageClass":
		if isDefault(o, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class") {
			j.byDefault(o)
		}
		j.class(o, text(o, "provisioner"))
	case "PriorityClass":
		value, _, _ := unstructured.NestedFieldNoCopy(o.Object, "value")
		number := asNumber(value)
		global, _, _ := unstructured.NestedBool(o.Object, "globalDefault")
		switch {
		case global:
			j.byDefault(o)
		case number > 0 && text(o, "preemptionPolicy") != "Never":
			j.place(o, "value").add(schema.PowerStarveOrPreempt, schema.ReachEveryone,
				fmt.Sprintf("evict pods of others for its own (priority %.0f)", number), fmt.Sprintf("%.0f", number))
		}
	case "RuntimeClass":
		j.byDefault(o)
	case "FlowSchema", "PriorityLevelConfiguration":
		j.place(o, "spec").add(schema.PowerStarveOrPreempt, schema.ReachEveryone, "change which requests the API server answers first", o.GetKind())
	case "CSIDriver":
		j.place(o, "").add(schema.PowerRawStorage, schema.ReachNode, "bring a storage driver, which mounts on nodes ("+o.GetName()+")", o.GetName())
	case "VolumeAttachment", "CSINode":
		j.place(o, "").add(schema.PowerControlNodes, schema.ReachNode, "control nodes and what runs on them", o.GetKind())
	}
}

func isDefault(o Object, annotations ...string) bool {
	return slices.ContainsFunc(annotations, func(a string) bool { return o.GetAnnotations()[a] == "true" })
}

func (j *judgement) byDefault(o Object) {
	j.place(o, "").add(schema.PowerDefaultForEveryone, schema.ReachEveryone, "be the default of the cluster for all who name none ("+o.GetKind()+")", o.GetKind())
}

// foreign judges custom resources of kinds that are not its own: their controllers do what they say.
func (j *judgement) foreign(o Object) {
	group := groupOf(o)
	if isBuiltIn(group) || j.ownsKind(group, o.GetKind()) {
		return
	}
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if j.own[o.GetNamespace()] && quiet(group, resource.Resource) {
		return
	}
	j.place(o, "").add(schema.PowerInstructsController, schema.ReachCluster, "instruct a controller that may have rights of its own ("+o.GetKind()+" of "+group+")", group+"/"+o.GetKind())
}

// text is a string in an object, "" where there is none.
func text(o Object, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func nestedList(object map[string]any, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, _ := value.([]any)
	return list
}

func nestedStrings(object map[string]any, path ...string) []string {
	var list []string
	for _, entry := range nestedList(object, path...) {
		if s, ok := entry.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

func asNumber(value any) float64 {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case float64:
		return value
	}
	return 0
}

// nestedMap is a map in an object, nil where there is none.
func nestedMap(object map[string]any, path ...string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	m, _ := value.(map[string]any)
	return m
}
