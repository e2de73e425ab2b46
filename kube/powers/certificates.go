package powers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// certificate judges what cert-manager has signed by an issuer of the cluster, which signs any name. Its own issuers sign for those who
// trust them.
func (j *judgement) certificate(o Object) {
	spec := nestedMap(o.Object, "spec")
	issuer := stringIn(nestedMap(spec, "issuerRef"), "kind") + "/" + stringIn(nestedMap(spec, "issuerRef"), "name")
	if strings.Contains(issuer, "ClusterIssuer/") {
		var names, wide []string
		for _, key := range []string{"commonName", "literalSubject"} {
			names = append(names, stringIn(spec, key))
		}
		for _, key := range []string{"dnsNames", "ipAddresses", "uris", "emailAddresses"} {
			names = append(names, nestedStrings(spec, key)...)
		}
		names = append(names, nestedStrings(spec, "subject", "organizations")...)
		names = set(slices.DeleteFunc(names, func(name string) bool { return name == "" }))
		if spec["isCA"] == true {
			wide = append(wide, "issues others")
		}
		if o.GetKind() == "CertificateRequest" {
			wide = append(wide, "names that cannot be seen")
		}
		for _, name := range names {
			if isOfKubernetes(name) {
				wide = append(wide, name)
			}
		}
		if subject := stringIn(spec, "literalSubject"); strings.ContainsAny(subject, `\#`) { // escaped characters, or hexadecimal ones
			wide = append(wide, subject)
		}
		p := j.place(o, "spec.issuerRef")
		if len(wide) > 0 {
			p.add(schema.PowerIssueIdentities, schema.ReachCluster, "have "+issuer+" sign a certificate that can stand for others ("+enumerate(set(wide))+")", append(wide, issuer)...)
		} else {
			p.show(schema.PowerIssueIdentities, schema.ReachNamespaces, "have "+issuer+" sign a certificate for "+enumerate(names), append(names, issuer)...)
		}
	}
	j.foreign(o)
}

// isOfKubernetes reports whether a name can be that of a user or a group of Kubernetes, or of kubeadm's administrators.
func isOfKubernetes(name string) bool {
	return strings.Contains(name, "system:") || strings.Contains(name, "kubeadm:")
}

// requested judges annotations by which cert-manager makes a certificate for an Ingress, a Gateway or a Route. Without an issuer, or with one of
// another kind, it can be one of the cluster.
func (j *judgement) requested(o Object) {
	const prefix = "cert-manager.io/"
	annotations := o.GetAnnotations()
	isCluster := annotations[prefix+"issuer"] == "" || annotations[prefix+"cluster-issuer"] != ""
	if kind := annotations[prefix+"issuer-kind"]; kind != "" {
		isCluster = kind != "Issuer"
	}
	var wide []string
	for annotation, value := range annotations {
		if strings.HasPrefix(annotation, prefix) && isOfKubernetes(value) {
			wide = append(wide, annotation+"="+shortened(value, "SHA-256 "))
		}
	}
	if len(wide) > 0 && isCluster {
		wide = append(set(wide), "issuer "+cmp.Or(annotations[prefix+"cluster-issuer"], annotations[prefix+"issuer"], "of the cluster"))
		j.place(o, "metadata.annotations").add(schema.PowerIssueIdentities, schema.ReachCluster,
			"have cert-manager make a certificate that can stand for others ("+enumerate(wide)+")", wide...)
	}
}
