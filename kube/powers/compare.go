package powers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/schema"
)

// Uncovered returns those wanted powers that need an approval, or that no approval allows, and that approved ones do not
// cover. A power covers another of the same name, reach, object and subject whose rules permit no more and whose effects are
// among its own. A role or subject that changed its name is another one.
func Uncovered(approved, wanted []schema.Power) []schema.Power {
	have := map[string][]schema.Power{}
	for _, p := range approved {
		have[identity(p)] = append(have[identity(p)], p)
	}
	var missing []schema.Power
	for _, p := range wanted {
		switch {
		case p.Need == schema.NeedShown:
		case p.Need == schema.NeedRefused, !covers(have[identity(p)], p):
			missing = append(missing, p)
		}
	}
	return missing
}

// Digest identifies a power with its rules and effects, in 32 hexadecimal digits.
func Digest(p schema.Power) string {
	data, err := json.Marshal([]any{identity(p), p.Rules, p.Effects})
	if err != nil {
		panic(err) // it is text
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func identity(p schema.Power) string {
	return strings.Join([]string{string(p.Name), string(p.Reach), refKey(p.Object), p.Subject}, "\x01")
}

// covers reports whether one of the approved powers, which are about the same, covers a wanted one.
func covers(approved []schema.Power, wanted schema.Power) bool {
	return slices.ContainsFunc(approved, func(p schema.Power) bool {
		// Only of rights * is every namespace. Elsewhere it is from the archive.
		everywhere := strings.HasPrefix(p.Object.APIVersion, rbacGroup+"/") && slices.Contains(p.Effects, "*")
		if slices.ContainsFunc(wanted.Effects, func(e string) bool {
			return !slices.Contains(p.Effects, e) && (!everywhere || len(validation.IsDNS1123Label(e)) > 0)
		}) {
			return false
		}
		if reflect.DeepEqual(p.Rules, wanted.Rules) { // the usual case, also of rules that are too large to be compared
			return true
		}
		missing, err := rbac.Missing(rulesOf(p), rulesOf(wanted))
		return err == nil && len(missing) == 0
	})
}

func rulesOf(p schema.Power) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, len(p.Rules))
	for i, rule := range p.Rules {
		rules[i] = rbacv1.PolicyRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames, NonResourceURLs: rule.NonResourceURLs,
		}
	}
	return rules
}
