package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/schema/report"
)

// danger is a set of permissions that gives more than it seems to.
type danger struct {
	reason    Reason
	group     string
	resources []string
	unbound   []string // resources outside of namespaces: a binding in a namespace does not grant them
	verbs     []string // nil means any
	reach     reach
	why, hint string
}

// reach is the scope in which a permission is dangerous, and the severity there.
type reach int

const (
	always      reach = iota // an error wherever it is bound
	everywhere               // an error across namespaces, a warning in one
	acrossOnly               // an error across namespaces, fine in one
	warning                  // a warning wherever it is bound
	unlessNamed              // an error, but a warning when resourceNames bound it
)

func write() []string { return []string{"create", "update", "patch", "delete", "deletecollection"} }

const rbacGroup = "rbac.authorization.k8s.io"

// dangers is the table of permissions that [Judge] knows.
func dangers() []danger {
	roles, clusterRoles := []string{"roles"}, []string{"clusterroles"}
	const ask = "leave it to the administrator who installs the Solution"
	return []danger{
		{Escalate, rbacGroup, roles, clusterRoles, []string{"escalate"}, always, "lets it give itself any permission", ask},
		// The API server asks for bind on a ClusterRole in the namespace of the RoleBinding.
		{Bind, rbacGroup, []string{"roles", "clusterroles"}, nil, []string{"bind"}, unlessNamed, "lets it bind any role, cluster-admin included", "name the roles in resourceNames"},
		{Impersonate, "", []string{"serviceaccounts"}, []string{"users", "groups"}, []string{"impersonate"}, always, "lets it act as anybody", ask},
		{Impersonate, "authentication.k8s.io", nil, []string{"userextras", "uids"}, []string{"impersonate"}, always, "lets it act as anybody", ask},
		{
			WriteRoles, rbacGroup,
			[]string{"roles", "rolebindings"},
			[]string{"clusterroles", "clusterrolebindings"},
			write(),
			always, "lets it change who may do what", ask,
		},
		{Token, "", []string{"serviceaccounts/token"}, nil, []string{"create"}, unlessNamed, "lets it become any ServiceAccount", "name the ServiceAccounts in resourceNames"},
		{Exec, "", []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers"}, nil, nil, everywhere, "lets it run commands in any pod", "ask the pod's own API instead"},
		{NodeProxy, "", nil, []string{"nodes/proxy"}, nil, always, "reaches the kubelet past admission and audit, and so every pod of the node", "use nodes/metrics or nodes/stats"},
		{ReadSecrets, "", []string{"secrets"}, nil, []string{"list", "watch"}, acrossOnly, "shows it every Secret", "use a Role, or get with resourceNames"},
		{Webhooks, "admissionregistration.k8s.io", nil, []string{
			"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "mutatingadmissionpolicies",
			"mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
		}, write(), always, "lets it read and change what others write", "ship the configuration in operator/cluster"},
		{
			WriteCRDs, "apiextensions.k8s.io", nil,
			[]string{"customresourcedefinitions", "customresourcedefinitions/status"},
			write(),
			always, "lets it change or delete the API and data of every namespace", "ship the definitions in operator/deploy/crds",
		},
		{Certificates, "certificates.k8s.io", nil, []string{"certificatesigningrequests/approval", "signers"}, nil, always, "lets it issue client certificates for anybody", ask},
		{Volumes, "", nil, []string{"persistentvolumes"}, []string{"create"}, warning, "lets it mount any path of a node", "use a StorageClass"},
		{Namespaces, "", []string{"namespaces"}, nil, []string{"update", "patch"}, warning, "lets it take the pod security level off a namespace", ask},
	}
}

// permissions reports each danger that the rule covers, once.
func (j *judgement) permissions(rule rbacv1.PolicyRule) {
	for _, d := range dangers() {
		if j.across() {
			d.resources = slices.Concat(d.resources, d.unbound)
		}
		resource, verb, ok := d.covered(rule)
		if !ok {
			continue
		}
		if severity := j.severity(d.reach, rule); severity != "" {
			j.add(d.reason, severity, d.hint, "%s on %s %s", verb, resource, d.why)
		}
	}
}

func (j *judgement) severity(r reach, rule rbacv1.PolicyRule) report.Severity {
	switch {
	case r == warning,
		r == everywhere && !j.across(),
		r == unlessNamed && len(rule.ResourceNames) > 0:
		return report.SeverityWarning
	case r == acrossOnly && (!j.across() || len(rule.ResourceNames) > 0):
		return ""
	}
	return report.SeverityError
}

// covered returns the first resource and verb of the danger that the rule permits.
func (d danger) covered(rule rbacv1.PolicyRule) (resource, verb string, ok bool) {
	if !contains(rule.APIGroups, d.group) && !contains(rule.APIGroups, "*") {
		return "", "", false
	}
	at := slices.IndexFunc(d.resources, func(r string) bool { return coversResource(rule.Resources, r) })
	if at < 0 {
		return "", "", false
	}
	if contains(rule.Verbs, "*") {
		return d.resources[at], "every verb", true
	}
	if d.verbs == nil {
		return d.resources[at], strings.Join(rule.Verbs, ", "), true
	}
	for _, v := range d.verbs {
		if contains(rule.Verbs, v) {
			return d.resources[at], v, true
		}
	}
	return "", "", false
}

// coversResource follows the API server: "*" is every resource and subresource, "*/scale" one subresource of all.
func coversResource(have []string, resource string) bool {
	if contains(have, "*") || contains(have, resource) {
		return true
	}
	_, sub, found := strings.Cut(resource, "/")
	return found && contains(have, "*/"+sub)
}

// Summary renders a rule as one line, for messages.
func Summary(rule rbacv1.PolicyRule) string {
	if len(rule.NonResourceURLs) > 0 {
		return fmt.Sprintf("%s on %s", strings.Join(rule.Verbs, ", "), strings.Join(rule.NonResourceURLs, ", "))
	}
	resources := make([]string, 0, len(rule.Resources))
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource += "." + group
			}
			resources = append(resources, resource)
		}
	}
	text := fmt.Sprintf("%s on %s", strings.Join(rule.Verbs, ", "), strings.Join(resources, ", "))
	if len(rule.ResourceNames) > 0 {
		text += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	return text
}
