package records

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// trust is the endpoints of a registry, each with the authorities that may have signed its certificate.
type trust struct {
	endpoints   []string
	authorities map[string][]*x509.Certificate
}

func newTrust(r *schema.ClusterRegistry) *trust {
	t := &trust{endpoints: []string{}, authorities: map[string][]*x509.Certificate{}}
	for _, recorded := range r.Endpoints {
		endpoint := recorded
		if parsed, err := schema.ParseEndpoint(recorded); err == nil {
			endpoint = parsed
		}
		if slices.Contains(t.endpoints, endpoint) {
			continue
		}
		t.endpoints = append(t.endpoints, endpoint)
		t.authorities[endpoint], _ = parseAuthorities(r.Authority(recorded)) // an authority that cannot be parsed is not trusted
	}
	return t
}

// renew replaces certificates by newer ones of the same authorities, which have the same keys.
func (t *trust) renew(given []*x509.Certificate) {
	for _, list := range t.authorities {
		for i, c := range list {
			n := slices.IndexFunc(given, func(g *x509.Certificate) bool { return sameAuthority(c, g) && g.NotAfter.After(c.NotAfter) })
			if n >= 0 {
				list[i] = given[n]
			}
		}
	}
}

// add adds an endpoint, unless it is known as something else.
func (t *trust) add(endpoint string, given []*x509.Certificate, replace bool) error {
	scheme, host, _ := strings.Cut(endpoint, "://")
	if scheme == "http" {
		given = nil
	}
	place := slices.IndexFunc(t.endpoints, func(known string) bool { return strings.HasSuffix(known, "://"+host) })
	if place < 0 {
		t.endpoints = append(t.endpoints, endpoint)
		t.authorities[endpoint] = given
		return nil
	}
	known := t.endpoints[place]
	before := t.authorities[known]
	stranger := slices.IndexFunc(given, func(g *x509.Certificate) bool {
		return !slices.ContainsFunc(before, func(c *x509.Certificate) bool { return sameAuthority(c, g) })
	})
	const hint = "if that host is the right one: %s, with --ca FILE unless it runs there"
	again := report.Run("deploy registry add", endpoint).With("replace")
	switch {
	case replace:
	case known != endpoint:
		return report.Errorf(report.Refused, "endpoint %s is recorded as %s", endpoint, known).WithHint(hint, again)
	case stranger >= 0 && len(before) > 0:
		return report.Errorf(report.Refused, "endpoint %s is recorded with another authority: %s, not %s",
			endpoint, fingerprint(before[0]), fingerprint(given[stranger])).WithHint(hint, again)
	case len(before) > 0:
		return nil // which it had before
	}
	t.endpoints[place] = endpoint
	t.authorities[endpoint] = given
	return nil
}

// registry returns the record to write.
func (t *trust) registry(known *schema.ClusterRegistry) *schema.ClusterRegistry {
	next := &schema.ClusterRegistry{Mode: modeOf(known, t.endpoints), Host: known.Host, Endpoints: t.endpoints}
	var all []*x509.Certificate
	own := map[string]string{}
	for _, endpoint := range t.endpoints {
		all = append(all, t.authorities[endpoint]...)
		if strings.HasPrefix(endpoint, "https://") {
			own[endpoint] = encodeAuthorities(t.authorities[endpoint])
		}
	}
	next.CA = encodeAuthorities(all)
	maps.DeleteFunc(own, func(_, authority string) bool { return authority == next.CA })
	if len(own) > 0 {
		next.Authorities = own
	}
	return next
}

// modeOf is the mode of a registry with these endpoints: external when images were pushed to one of them.
func modeOf(known *schema.ClusterRegistry, endpoints []string) schema.RegistryMode {
	if known.Host != schema.RegistryHostOwn {
		return known.Mode
	}
	if slices.ContainsFunc(endpoints, schema.IsPushedTo) {
		return schema.RegistryExternal
	}
	return schema.RegistryOwn
}

// parseAuthorities reads certificates in PEM; text between them is ignored.
func parseAuthorities(text string) (list []*x509.Certificate, err error) {
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, failure := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || failure != nil {
			err = report.Errorf(report.Usage, "the certificates of the authority have a %s that cannot be read", strings.ToLower(block.Type))
			continue
		}
		list = append(list, c)
	}
	if err == nil && len(list) == 0 && strings.TrimSpace(text) != "" {
		err = report.Errorf(report.Usage, "the file of the authority has no certificate in PEM")
	}
	return list, err
}

// encodeAuthorities writes certificates, each once.
func encodeAuthorities(list []*x509.Certificate) string {
	var b strings.Builder
	for i, c := range list {
		if !slices.ContainsFunc(list[:i], c.Equal) {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
		}
	}
	return b.String()
}

// sameAuthority reports whether two certificates belong to one authority: a renewed certificate has the same key.
func sameAuthority(a, b *x509.Certificate) bool {
	return bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}

// fingerprint names a certificate, as 'openssl x509 -fingerprint -sha256' does.
func fingerprint(c *x509.Certificate) string {
	return fmt.Sprintf("SHA256:%x", sha256.Sum256(c.Raw))
}
