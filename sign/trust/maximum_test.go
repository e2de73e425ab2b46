package trust_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// TestMaximum: a rule names the powers, or reaches, that a Solution may have; without maximum there is no limit.
func TestMaximum(t *testing.T) {
	powers := []schema.Power{
		{Name: schema.PowerReadSecrets, Reach: schema.ReachCluster, Need: schema.NeedApproval},
		{Name: schema.PowerTakesTraffic, Reach: schema.ReachTraffic, Need: schema.NeedApproval},
		{Name: schema.PowerOpensToOutside, Reach: schema.ReachOutside, Need: schema.NeedShown},
	}
	for line, want := range map[string]string{
		"": "", "maximum: []": "read-secrets takes-traffic", "maximum: [read-secrets]": "takes-traffic", "maximum: [traffic]": "read-secrets",
		"maximum: [cluster, takes-traffic]": "", "maximum: [everything]": "maximum: \"everything\" is neither",
	} {
		policy, err := trust.ParsePolicy("policy.yaml", []byte("apiVersion: solutionctl.io/v1alpha1\nkind: VerificationPolicy\ndefault: reject\n"+
			"rules:\n- solutions: [shop]\n  signers: [{key: a}]\n  "+line+"\n"))
		if err != nil {
			if want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", line, err)
			}
			continue
		}
		var got []string
		for _, p := range policy.Rules[0].Exceeding(powers) {
			got = append(got, string(p.Name))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// TestNullInPolicy: a field without a value is refused. It would stand for no limit where a limit was meant.
func TestNullInPolicy(t *testing.T) {
	const head = "apiVersion: solutionctl.io/v1alpha1\nkind: VerificationPolicy\ndefault: reject\nrules:\n- solutions: [shop]\n  signers: [{key: a}, {key: b}]\n"
	for _, text := range []string{
		head + "  threshold:\n", head + "  threshold: ~\n", head + "  maximum:\n", head + "  downgrade: null\n", head + "  requireTimestamp:\n",
		strings.Replace(head, "{key: b}", "{key: b, notAfter: }", 1), strings.Replace(head, "{key: b}", "~", 1), head + "allowOverride:\n",
	} {
		if _, err := trust.ParsePolicy("policy.yaml", []byte(text)); report.CodeOf(err) != report.TrustStore || !strings.Contains(err.Error(), "no value") {
			t.Errorf("%q: %v", text[len(head)-30:], err)
		}
	}
	if _, err := trust.ParsePolicy("policy.yaml", []byte(head)); err != nil {
		t.Error(err)
	}
}
