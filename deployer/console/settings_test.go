package console_test

import (
	"html"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// TestTrust: the settings tell whom the host trusts to whoever runs the console there, and to others that they do not know: no page
// says that nobody is trusted when that is not so.
func TestTrust(t *testing.T) {
	vendor := deployertest.NewVendor(t)
	store, err := vendor.Trusted()
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := store.List()[0].Key.Fingerprint()
	damaged := func() (*trust.Store, error) {
		return nil, report.Errorf(report.Invalid, "policy.yaml: line 3 is damaged")
	}
	const none, elsewhere = "No key is trusted", "solutionctl trust list"
	for _, test := range []struct {
		name        string
		trusted     func() (*trust.Store, error)
		token       bool
		says, never []string
	}{
		{"who runs it", vendor.Trusted, false, []string{fingerprint, "vendor"}, []string{none, elsewhere}},
		{"somebody else", vendor.Trusted, true, []string{elsewhere}, []string{none, fingerprint}},
		{"a host without a store", nil, false, []string{elsewhere}, []string{none}},
		{"nobody is trusted", func() (*trust.Store, error) { return trust.Keys(nil), nil }, false, []string{none}, []string{elsewhere}},
		{"it cannot be read", damaged, false, []string{"line 3 is damaged"}, []string{none}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := start(t, func(o *console.Options) { o.Trusted = test.trusted })
			c := b.in(t)
			if test.token {
				c = b.with(t, "jane")
			}
			page := html.UnescapeString(c.get("/settings").body)
			for _, words := range test.says {
				if !strings.Contains(page, words) {
					t.Errorf("the page does not say %q", words)
				}
			}
			for _, words := range test.never {
				if strings.Contains(page, words) {
					t.Errorf("the page says %q", words)
				}
			}
		})
	}
}
