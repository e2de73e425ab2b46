package powers

import (
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
			if strings.Contains(name, "system:") { // users and groups of Kubernetes
				wide = append(wide, name)
			}
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
