package powers

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema"
)

const admissionGroup = "admissionregistration.k8s.io"

// admission judges who is called for requests, and what decides on them.
func (j *judgement) admission(o Object) {
	switch o.GetKind() {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		for i, webhook := range nested(o.Object, "webhooks") {
			j.webhook(o, webhook, indexed("webhooks", i))
		}
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		j.policy(o)
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		j.policyBinding(o)
	}
}

// webhook judges one webhook of a configuration.
func (j *judgement) webhook(o Object, webhook map[string]any, field string) {
	does := "checks"
	if o.GetKind() == "MutatingWebhookConfiguration" {
		does = "changes"
	}
	narrowed := selectorsOf(webhook)
	effects := j.intercepted(o, nested(webhook, "rules"), does, narrowed)
	j.client(o, webhook["clientConfig"], field+".clientConfig", "requests")
	if len(effects) == 0 {
		return
	}
	closed := cmp.Or(stringIn(webhook, "failurePolicy"), "Fail") == "Fail"
	why := strings.TrimSuffix(does, "s") + " requests that are not about its own groups"
	switch {
	case closed && narrowed == "":
		effects = append(effects, "stops them while it does not answer")
		why += ", and stop them while it does not answer"
	case closed:
		effects = append(effects, "stops them while it does not answer")
	}
	reach := schema.ReachCluster
	if len(nested(webhook, "objectSelector", "matchExpressions"))+len(nestedMap(webhook, "objectSelector", "matchLabels")) > 0 {
		reach = schema.ReachNamespaces // objects that ask for it
	}
	j.place(o, field).add(schema.PowerInterceptsRequests, reach, why+" ("+strings.Join(j.interceptedResources(nested(webhook, "rules")), ", ")+")", effects...)
}

// intercepted lists what rules intercept beyond the Solution's own groups, one operation on one resource each.
func (j *judgement) intercepted(o Object, rules []map[string]any, does, narrowed string) []string {
	var effects []string
	for _, rule := range rules {
		for _, group := range nestedStrings(rule, "apiGroups") {
			if j.ownsAll(group) {
				continue
			}
			resources, operations := nestedStrings(rule, "resources"), nestedStrings(rule, "operations")
			if !j.spend(refOf(o), len(resources)*max(1, len(operations))) {
				return nil
			}
			for _, resource := range resources {
				if j.ownsResource(group, resource) {
					continue
				}
				for _, operation := range operations {
					effects = append(effects, strings.Join([]string{does, operation, resourceText(group, resource)}, " ")+narrowed)
				}
			}
		}
	}
	return effects
}

// worstResources have the requests that are worst to intercept.
var worstResources = []string{"everything", "*", "*/*", "secrets", "serviceaccounts/token", "pods", "nodes"}

// interceptedResources lists the resources of rules that are not of its own groups, the worst ones first.
func (j *judgement) interceptedResources(rules []map[string]any) []string {
	var list []string
	for _, rule := range rules {
		for _, group := range nestedStrings(rule, "apiGroups") {
			if j.ownsAll(group) {
				continue
			}
			for _, resource := range nestedStrings(rule, "resources") {
				if !j.ownsResource(group, resource) {
					list = append(list, resourceText(group, resource))
				}
			}
		}
	}
	list = set(list)
	rank := func(resource string) uint {
		return uint(slices.Index(worstResources, strings.TrimSuffix(resource, ".*")))
	} // others come last
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

func resourceText(group, resource string) string {
	switch {
	case group == "*" && strings.HasPrefix(resource, "*"):
		return "everything"
	case group == "":
		return resource
	}
	return resource + "." + group
}

// selectorsOf describes the selectors of a webhook or a policy; "" without any. An approval covers only the same selectors.
func selectorsOf(from map[string]any) string {
	narrowed := map[string]any{}
	for _, key := range []string{"namespaceSelector", "objectSelector", "matchConditions"} {
		switch value := from[key].(type) {
		case map[string]any:
			if len(value) > 0 {
				narrowed[key] = value
			}
		case []any:
			if len(value) > 0 {
				narrowed[key] = value
			}
		}
	}
	if len(narrowed) == 0 {
		return ""
	}
	return " where " + textOf(narrowed)
}

// textOf returns selectors as JSON, or where it is long its digest.
func textOf(selectors map[string]any) string {
	data, err := json.Marshal(selectors)
	if err != nil { // a number without a value
		data = fmt.Append(nil, selectors)
	}
	return shortened(string(data), "SHA-256 of the selectors is ")
}

// shortened returns a text, or where it is long its digest after a prefix: each effect, or each power, repeats it.
func shortened(text, prefix string) string {
	const longest = 1000
	if len(text) <= longest {
		return text
	}
	return fmt.Sprintf("%s%x", prefix, sha256.Sum256([]byte(text)))
}

// client judges who is called: a Service of its own, or something else.
func (j *judgement) client(o Object, config any, field, what string) {
	c, _ := config.(map[string]any)
	if url := stringIn(c, "url"); url != "" {
		j.place(o, field+".url").add(schema.PowerOpensToOutside, schema.ReachOutside, "send "+what+" of the cluster to "+url, url)
	}
	service, _ := c["service"].(map[string]any)
	if namespace := stringIn(service, "namespace"); namespace != "" && !j.own[namespace] {
		name := namespace + "/" + stringIn(service, "name")
		j.place(o, field+".service").add(schema.PowerInterceptsRequests, schema.ReachCluster, "send "+what+" to a Service that is not its own ("+name+")", "to "+name)
	}
}

// policy judges an admission policy.
func (j *judgement) policy(o Object) {
	does := "checks"
	if o.GetKind() == "MutatingAdmissionPolicy" {
		does = "changes"
	}
	constraints := nestedMap(o.Object, "spec", "matchConstraints")
	rules := nested(constraints, "resourceRules")
	conditions := map[string]any{"matchConditions": nestedList(o.Object, "spec", "matchConditions")}
	for _, key := range []string{"namespaceSelector", "objectSelector"} {
		conditions[key] = constraints[key]
	}
	if effects := j.intercepted(o, rules, does, selectorsOf(conditions)); len(effects) > 0 {
		j.place(o, "spec.matchConstraints").add(schema.PowerInterceptsRequests, schema.ReachCluster,
			strings.TrimSuffix(does, "s")+" requests that are not about its own groups ("+strings.Join(j.interceptedResources(rules), ", ")+")", effects...)
	}
}

// policyBinding judges a binding: of a policy that is not among the objects, and what the policy reads with it.
func (j *judgement) policyBinding(o Object) {
	name := text(o, "spec", "policyName")
	key := objectKey(admissionGroup, strings.TrimSuffix(o.GetKind(), "Binding"), "", name)
	kinds := j.parameters[key]
	if !j.present[key] {
		j.place(o, "spec.policyName").add(schema.PowerInterceptsRequests, schema.ReachCluster, "turn on a policy that the archive does not bring ("+name+")", name)
		kinds = []kube.GroupKind{{Kind: "Secret"}} // for all that is known
	}
	ref := nestedMap(o.Object, "spec", "paramRef")
	if ref == nil || j.own[stringIn(ref, "namespace")] || !j.spend(refOf(o), len(kinds)) {
		return
	}
	for _, kind := range kinds {
		j.place(o, "spec.paramRef").reads(kind, ref)
	}
}

// reads judges the objects that a policy reads as its parameters: it can show them in a refusal, or copy them into an object.
func (p place) reads(kind kube.GroupKind, ref map[string]any) {
	if p.ownsKind(kind.Group, kind.Kind) {
		return
	}
	namespace, which := cmp.Or(stringIn(ref, "namespace"), "*"), stringIn(ref, "name") // the default is that of the request
	if selector := nestedMap(ref, "selector"); selector != nil {
		which = "selected by " + textOf(selector)
	}
	power, reach := schema.PowerReadOthers, schema.ReachNamespaces
	if kind == (kube.GroupKind{Kind: "Secret"}) {
		power = schema.PowerReadSecrets
		if namespace == "*" || schema.IsSystemNamespace(namespace) {
			reach = schema.ReachCluster
		}
	}
	p.add(power, reach, "have a policy read "+kind.String()+" "+which+" of "+placeText([]string{namespace}), kind.String()+" "+namespace+" "+which)
}

// mostPriority is up to what priority groups of others usually go: those of CRDs have 1000, and those of Kubernetes more than 2000.
const mostPriority = 2000

// api judges CRDs and APIServices.
func (j *judgement) api(o Object) {
	group := text(o, "spec", "group")
	switch {
	case o.GetKind() != "CustomResourceDefinition" && o.GetKind() != "APIService" || j.groups[group]:
	case schema.IsAPIServerGroup(group):
		j.place(o, "spec.group").refuse(schema.PowerDefinesForeignAPIs, schema.ReachCluster, "define kinds of a group of the API server itself ("+group+")", group)
	default:
		why := "define kinds of a group that is not its own (" + group + ")"
		if j.owner.ForeignGroup != nil {
			if owner := j.owner.ForeignGroup(group); owner != "" {
				why = "define kinds of a group that " + owner + " has (" + group + ")"
			}
		}
		j.place(o, "spec.group").add(schema.PowerDefinesForeignAPIs, schema.ReachCluster, why, group)
	}
	switch o.GetKind() {
	case "CustomResourceDefinition":
		conversion, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig")
		j.client(o, conversion, "spec.conversion.webhook.clientConfig", "objects that are stored")
	case "APIService":
		spec, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec")
		j.client(o, spec, "spec", "requests")
		priority, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "groupPriorityMinimum")
		if number := asNumber(priority); number > mostPriority {
			j.place(o, "spec.groupPriorityMinimum").add(schema.PowerDefaultForEveryone, schema.ReachEveryone,
				fmt.Sprintf("have its kinds come before those of Kubernetes with the same name (priority %.0f)", number), fmt.Sprintf("%.0f", number))
		}
		if insecure, _, _ := unstructured.NestedBool(o.Object, "spec", "insecureSkipTLSVerify"); insecure {
			j.place(o, "spec.insecureSkipTLSVerify").add(schema.PowerInterceptsRequests, schema.ReachCluster, "answer requests without proving who it is", "insecureSkipTLSVerify")
		}
	}
}

func stringIn(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}
