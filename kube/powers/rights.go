package powers

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// right is a set of permissions that has a name of its own among the powers.
type right struct {
	name      schema.PowerName
	reach     schema.Reach // when it is granted in the whole cluster
	own       schema.Reach // when it is granted in its own namespaces only; "" where that is nothing special
	group     string
	resources []string
	verbs     []string     // nil stands for any
	wide      bool         // on resources outside namespaces, which a RoleBinding does not grant
	named     schema.Reach // when resourceNames narrow it; "" where they change nothing
}

const rbacGroup = rbacv1.GroupName

// The verbs by which something is written, and those by which it is read.
var (
	writing = []string{"create", "update", "patch"}
	erasing = []string{"delete", "deletecollection"}
	reading = []string{"get", "list", "watch"}
)

// rights is the table of permissions that have a name of their own.
var rights = slices.Concat(rightsOverRights, rightsOverNodes, rightsOverOthers, rightsOverControllers)

var rightsOverRights = []right{
	{
		name: schema.PowerChangeRights, reach: schema.ReachCluster, own: schema.ReachNamespaces, group: rbacGroup,
		resources: []string{"roles", "rolebindings"}, verbs: slices.Concat(writing, []string{"escalate", "bind"}),
	},
	{
		name: schema.PowerChangeRights, reach: schema.ReachCluster, own: schema.ReachNamespaces, named: schema.ReachNamespaces, group: rbacGroup,
		resources: []string{"clusterroles"}, verbs: []string{"bind"},
	}, // in a namespace, the API server asks for it there
	{
		name: schema.PowerChangeRights, reach: schema.ReachCluster, wide: true, group: rbacGroup,
		resources: []string{"clusterroles", "clusterrolebindings"}, verbs: slices.Concat(writing, []string{"escalate"}),
	},
	{
		name: schema.PowerActAsOthers, reach: schema.ReachCluster, own: schema.ReachNamespaces, group: "",
		resources: []string{"serviceaccounts"}, verbs: []string{"impersonate"},
	},
	{name: schema.PowerActAsOthers, reach: schema.ReachCluster, wide: true, group: "", resources: []string{"users", "groups"}, verbs: []string{"impersonate"}},
	{
		name: schema.PowerActAsOthers, reach: schema.ReachCluster, wide: true, group: "authentication.k8s.io",
		resources: []string{"users", "groups", "serviceaccounts", "uids", "userextras/*"}, verbs: []string{"impersonate"},
	},
	{
		name: schema.PowerActAsOthers, reach: schema.ReachCluster, own: schema.ReachNamespaces, named: schema.ReachNamespaces, group: "",
		resources: []string{"serviceaccounts/token"}, verbs: []string{"create"},
	},
	{name: schema.PowerActAsOthers, reach: schema.ReachCluster, group: "", resources: []string{"secrets"}, verbs: writing},
	{
		name: schema.PowerIssueIdentities, reach: schema.ReachCluster, wide: true, group: "certificates.k8s.io",
		resources: []string{"certificatesigningrequests/approval", "certificatesigningrequests/status", "signers"},
	},
	{
		name: schema.PowerIssueIdentities, reach: schema.ReachCluster, wide: true, group: "certificates.k8s.io",
		resources: []string{"clustertrustbundles"}, verbs: slices.Concat(writing, erasing),
	},
	{name: schema.PowerReadSecrets, reach: schema.ReachCluster, named: schema.ReachNamespaces, group: "", resources: []string{"secrets"}, verbs: reading},
}

var rightsOverNodes = []right{
	{name: schema.PowerControlNodes, reach: schema.ReachNode, wide: true, group: "", resources: []string{"nodes/proxy"}}, // get is enough to run code
	{name: schema.PowerControlNodes, reach: schema.ReachNode, wide: true, group: "", resources: []string{"nodes", "nodes/status"}, verbs: slices.Concat(writing, erasing)},
	{name: schema.PowerControlNodes, reach: schema.ReachNode, group: "", resources: []string{"pods/status", "pods/eviction", "pods/binding", "bindings"}, verbs: writing},
	{name: schema.PowerControlNodes, reach: schema.ReachNode, wide: true, group: "storage.k8s.io", resources: []string{"volumeattachments", "csinodes"}, verbs: slices.Concat(writing, erasing)},
	{name: schema.PowerRawStorage, reach: schema.ReachNode, wide: true, group: "", resources: []string{"persistentvolumes"}, verbs: writing},
	{name: schema.PowerRawStorage, reach: schema.ReachNode, wide: true, group: "storage.k8s.io", resources: []string{"csidrivers"}, verbs: writing},
	{name: schema.PowerMarkNamespaces, reach: schema.ReachCluster, own: schema.ReachNode, group: "", resources: []string{"namespaces"}, verbs: writing},
	{name: schema.PowerPodOnNode, reach: schema.ReachNode, own: schema.ReachNode, group: "security.openshift.io", resources: []string{"securitycontextconstraints"}, verbs: []string{"use"}},
}

var rightsOverOthers = []right{
	{
		name: schema.PowerRunPodsElsewhere, reach: schema.ReachCluster, group: "",
		resources: []string{"pods", "replicationcontrollers", "podtemplates", "pods/ephemeralcontainers"}, verbs: writing,
	},
	{
		name: schema.PowerRunPodsElsewhere, reach: schema.ReachCluster, group: "",
		resources: []string{"pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy"},
	},
	{
		name: schema.PowerRunPodsElsewhere, reach: schema.ReachCluster, group: "apps",
		resources: []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, verbs: writing,
	},
	{name: schema.PowerRunPodsElsewhere, reach: schema.ReachCluster, group: "batch", resources: []string{"jobs", "cronjobs"}, verbs: writing},
	{name: schema.PowerInterceptRequests, reach: schema.ReachCluster, wide: true, group: admissionGroup, resources: []string{
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "mutatingadmissionpolicies",
		"mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
	}, verbs: slices.Concat(writing, erasing)},
	{
		name: schema.PowerInterceptRequests, reach: schema.ReachCluster, wide: true, group: "apiextensions.k8s.io",
		resources: []string{"customresourcedefinitions", "customresourcedefinitions/status"}, verbs: slices.Concat(writing, erasing),
	},
	{
		name: schema.PowerInterceptRequests, reach: schema.ReachCluster, wide: true, group: "apiregistration.k8s.io",
		resources: []string{"apiservices", "apiservices/status"}, verbs: slices.Concat(writing, erasing),
	},
	{name: schema.PowerRedirectTraffic, reach: schema.ReachTraffic, group: "", resources: []string{"endpoints", "services", "services/status"}, verbs: writing},
	{name: schema.PowerRedirectTraffic, reach: schema.ReachTraffic, group: "discovery.k8s.io", resources: []string{"endpointslices"}, verbs: writing},
	{name: schema.PowerRedirectTraffic, reach: schema.ReachTraffic, group: "networking.k8s.io", resources: []string{"ingresses", "networkpolicies"}, verbs: writing},
	{name: schema.PowerStarveOrPreempt, reach: schema.ReachEveryone, wide: true, group: "scheduling.k8s.io", resources: []string{"priorityclasses"}, verbs: slices.Concat(writing, erasing)},
	{
		name: schema.PowerStarveOrPreempt, reach: schema.ReachEveryone, wide: true, group: "flowcontrol.apiserver.k8s.io",
		resources: []string{"flowschemas", "prioritylevelconfigurations"}, verbs: slices.Concat(writing, erasing),
	},
	{name: schema.PowerStarveOrPreempt, reach: schema.ReachEveryone, group: "", resources: []string{"resourcequotas", "limitranges"}, verbs: writing},
}

// rightsOverControllers are rights on kinds whose controllers have more rights than the writer of an object.
var rightsOverControllers = []right{
	instructs("kustomize.toolkit.fluxcd.io", "kustomizations"),
	instructs("helm.toolkit.fluxcd.io", "helmreleases"),
	instructs("source.toolkit.fluxcd.io", "*"),
	instructs("argoproj.io", "applications", "applicationsets", "appprojects"),
	instructs("operators.coreos.com", "*"),
	instructs("pkg.crossplane.io", "*"),
	instructs("apiextensions.crossplane.io", "*"),
	instructs("kyverno.io", "*"),
	instructs("templates.gatekeeper.sh", "*"),
	instructs("constraints.gatekeeper.sh", "*"),
	instructs("mutations.gatekeeper.sh", "*"),
	instructs("cert-manager.io", "clusterissuers"),
	instructs("external-secrets.io", "clustersecretstores", "clusterexternalsecrets", "secretstores", "pushsecrets"),
	instructs("cluster.x-k8s.io", "*"),
}

func instructs(group string, resources ...string) right {
	return right{
		name: schema.PowerInstructsController, reach: schema.ReachCluster, own: schema.ReachCluster, group: group,
		resources: resources, verbs: writing,
	}
}

// harmless are permissions that say nothing about others and change nothing of theirs.
func harmless(group, resource, verb string) bool {
	switch group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return verb == "create" && strings.HasSuffix(resource, "reviews")
	case "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io":
		return !slices.Contains(reading, verb) // nothing is written there
	case "", "events.k8s.io":
		return resource == "events" && !slices.Contains(erasing, verb)
	case "apiextensions.k8s.io":
		return resource == "customresourcedefinitions" && slices.Contains(reading, verb)
	}
	return false
}

// quiet are kinds of others of which objects in one's own namespace do no more than their writer could do.
func quiet(group, resource string) bool {
	switch group {
	case "monitoring.coreos.com":
		return slices.Contains([]string{"podmonitors", "probes", "prometheusrules", "servicemonitors"}, resource)
	case "gateway.networking.k8s.io":
		return resource != "gatewayclasses" // which have no namespace
	case "grafana.integreatly.org", "route.openshift.io", "snapshot.storage.k8s.io",
		"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io", "autoscaling.k8s.io", "autoscaling.k8s.elastic.co":
		return true
	case "cert-manager.io":
		return resource == "certificates" || resource == "issuers" || resource == "certificaterequests"
	}
	return false
}
