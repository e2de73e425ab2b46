package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Identification of the documents of a trust store.
const (
	apiVersion      = "solutionctl.io/v1alpha1"
	policyKind      = "VerificationPolicy"
	revocationsKind = "Revocations"
)

const maxDocument = 1 << 20

// Policy is the document policy.yaml.
type Policy struct {
	APIVersion string `yaml:"apiVersion" json:"apiVersion"`
	Kind       string `yaml:"kind" json:"kind"`
	// Default is the decision about a Solution that no rule matches: "reject", the only value.
	Default string `yaml:"default" json:"default"`
	// AllowOverride permits to skip verification with a flag. It is false when it is not set.
	AllowOverride bool   `yaml:"allowOverride" json:"allowOverride,omitempty"`
	Rules         []Rule `yaml:"rules" json:"rules"`
}

// Rule lists the signers of the Solutions that it matches. The first rule that matches counts.
type Rule struct {
	Solutions []string `yaml:"solutions" json:"solutions"` // names or patterns as of [path.Match]
	Signers   []Signer `yaml:"signers" json:"signers"`
	// Threshold is the number of different signers that are needed, 1 when it is not set. The same key is one
	// signer: under two names, and with a certificate.
	Threshold int `yaml:"threshold" json:"threshold,omitempty"`
	// AcceptPlain accepts signatures over the file alone, without a statement, as `cosign sign-blob` makes them.
	AcceptPlain bool `yaml:"acceptPlain" json:"acceptPlain,omitempty"`
	// Downgrade is "deny" or "allow"; "deny" when it is not set.
	Downgrade string `yaml:"downgrade" json:"downgrade,omitempty"`
	// RequireTimestamp wants a timestamp of a known authority; NotAfter is then judged at that time.
	RequireTimestamp bool `yaml:"requireTimestamp" json:"requireTimestamp,omitempty"`
	// Maximum are the names and reaches of powers that the Solutions may have at most. Nil stands for no limit, an empty list for none.
	Maximum *[]string `yaml:"maximum" json:"maximum,omitempty"`
}

// Exceeding returns the powers, of those that need an approval, that the rule does not let its Solutions have.
func (r *Rule) Exceeding(powers []schema.Power) (list []schema.Power) {
	if r.Maximum == nil {
		return nil
	}
	for _, p := range powers {
		if p.Need != schema.NeedShown && !slices.Contains(*r.Maximum, string(p.Name)) && !slices.Contains(*r.Maximum, string(p.Reach)) {
			list = append(list, p)
		}
	}
	return list
}

// Signer is a key of the store, or an identity to which an authority of the store has issued a certificate.
type Signer struct {
	Key      string `yaml:"key" json:"key,omitempty"`
	Root     string `yaml:"root" json:"root,omitempty"`
	Identity string `yaml:"identity" json:"identity,omitempty"`
	Issuer   string `yaml:"issuer" json:"issuer,omitempty"`
	NotAfter Date   `yaml:"notAfter" json:"notAfter,omitzero"`
}

// Date is the last moment at which something is valid. A day without a time of day means its end, in UTC.
type Date struct{ time.Time }

// UnmarshalYAML reads a day or an RFC 3339 time.
func (d *Date) UnmarshalYAML(node *yaml.Node) error {
	if day, err := time.Parse(time.DateOnly, node.Value); err == nil {
		d.Time = day.AddDate(0, 0, 1).Add(-time.Nanosecond)
		return nil
	}
	moment, err := time.Parse(time.RFC3339, node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is neither a day (2028-01-31) nor an RFC 3339 time", node.Line, node.Value)
	}
	d.Time = moment
	return nil
}

// ParsePolicy reads policy.yaml strictly. file is the name to use in errors, all of which have report.TrustStore.
func ParsePolicy(file string, data []byte) (*Policy, error) {
	fail := func(err error) (*Policy, error) {
		return nil, report.Errorf(report.TrustStore, "%s: %w", file, err).
			WithHint("correct the policy; nothing is verified while it is malformed")
	}
	if len(data) > maxDocument {
		return fail(fmt.Errorf("larger than %d bytes", maxDocument))
	}
	if _, err := schema.ParseYAML(file, data); err != nil { // has limits, which the decoder has not
		return nil, report.As(report.TrustStore, err).WithHint("correct the policy; nothing is verified while it is malformed")
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return fail(err)
	}
	if document.IsZero() {
		return fail(report.Errorf(report.TrustStore, "the file is empty, or has comments only").WithHint("write a document of kind %s", policyKind))
	}
	if err := refuseNull(&document); err != nil {
		return fail(err)
	}
	if err := refuseUnknown(&document, reflect.TypeFor[Policy]()); err != nil {
		return fail(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var p Policy
	if err := d.Decode(&p); err != nil {
		if several, ok := errors.AsType[*yaml.TypeError](err); ok { // it begins with a line of its own
			err = errors.New(strings.Join(several.Errors, "; "))
		}
		return fail(err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fail(errors.New("more than one document"))
	}
	if err := p.validate(); err != nil {
		return fail(err)
	}
	return &p, nil
}

// refuseNull refuses a field without a value, such as "threshold:" with nothing behind it. The decoder takes it for one that is not there,
// and so for no limit.
func refuseNull(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return fmt.Errorf("line %d: a field has no value: give it one, or leave it out", node.Line)
	}
	for _, child := range node.Content {
		if err := refuseNull(child); err != nil {
			return err
		}
	}
	return nil
}

// refuseUnknown refuses a field that a part of the policy of this type does not have, with its line and the fields that are known there.
func refuseUnknown(node *yaml.Node, t reflect.Type) error {
	switch {
	case node.Kind == yaml.DocumentNode:
		return refuseUnknown(node.Content[0], t)
	case t.Kind() == reflect.Slice && node.Kind == yaml.SequenceNode:
		for _, item := range node.Content {
			if err := refuseUnknown(item, t.Elem()); err != nil {
				return err
			}
		}
	case t.Kind() == reflect.Struct && node.Kind == yaml.MappingNode:
		known := fieldsOf(t)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			field, ok := known[key.Value]
			if !ok {
				return unknownField(key, slices.Sorted(maps.Keys(known)))
			}
			if err := refuseUnknown(node.Content[i+1], field); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldsOf returns the types of the fields of a struct by their names in YAML.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		if name := field.Tag.Get("yaml"); name != "" {
			fields[name] = field.Type
		}
	}
	return fields
}

func unknownField(key *yaml.Node, known []string) error {
	err := report.Errorf(report.TrustStore, "line %d: unknown field %q", key.Line, key.Value)
	if near := report.Nearest(key.Value, known); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("the fields here are %s", strings.Join(known, ", "))
}

func (p *Policy) validate() error {
	if p.APIVersion != apiVersion || p.Kind != policyKind {
		return fmt.Errorf("apiVersion %q, kind %q; want %s, %s", p.APIVersion, p.Kind, apiVersion, policyKind)
	}
	if p.Default != "reject" {
		return fmt.Errorf(`default: %q, want "reject"`, p.Default)
	}
	for i := range p.Rules {
		if err := p.Rules[i].validate(); err != nil {
			return fmt.Errorf("rules[%d]: %w", i, err)
		}
	}
	return nil
}

func (r *Rule) validate() error {
	if len(r.Solutions) == 0 || len(r.Signers) == 0 {
		return errors.New("want at least one of solutions and one of signers")
	}
	for _, pattern := range r.Solutions {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("solutions: %q is not a name or pattern", pattern)
		}
	}
	for i, s := range r.Signers {
		byKey, byRoot := s.Key != "", s.Root != "" && s.Identity != ""
		if byKey == byRoot || byKey && (s.Root != "" || s.Identity != "" || s.Issuer != "") {
			return fmt.Errorf("signers[%d]: want either key, or root and identity", i)
		}
	}
	if r.Threshold < 0 || r.Threshold > len(r.Signers) {
		return fmt.Errorf("threshold: %d, want 1 to %d, the number of signers", r.Threshold, len(r.Signers))
	}
	if r.Downgrade != "" && r.Downgrade != "deny" && r.Downgrade != "allow" {
		return fmt.Errorf(`downgrade: %q, want "deny" or "allow"`, r.Downgrade)
	}
	return r.validateMaximum()
}

func (r *Rule) validateMaximum() error {
	if r.Maximum == nil {
		return nil
	}
	for _, word := range *r.Maximum {
		if !slices.Contains(schema.PowerNames(), schema.PowerName(word)) && !slices.Contains(schema.Reaches(), schema.Reach(word)) {
			return fmt.Errorf("maximum: %q is neither the name nor the reach of a power", word)
		}
	}
	return nil
}

// Required is the number of different signers that the rule asks for.
func (r *Rule) Required() int { return max(r.Threshold, 1) }

func (r *Rule) matches(solution string) bool {
	for _, pattern := range r.Solutions {
		if ok, _ := path.Match(pattern, solution); ok {
			return true
		}
	}
	return false
}
