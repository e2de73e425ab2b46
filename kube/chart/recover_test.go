package chart_test

import (
	"encoding/json"
	"testing"

	"github.com/solutionctl/solutionctl/kube/chart"
)

func TestRecall(t *testing.T) {
	const certificate, other = "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nAwQF\n-----END CERTIFICATE-----\n"
	pair := map[string]string{"Cert": certificate, "Key": "k"}
	for _, test := range []struct {
		name, function string
		value          any
		rendered, live string
		want           any // nil when nothing is recovered
	}{
		{"a password", "randAlphaNum", "abcDEF123", "abcDEF123", "xyzXYZ789", "xyzXYZ789"},
		{"a password inside of a text", "randAlphaNum", "abcDEF123", "db://me:abcDEF123@db", "db://me:xyzXYZ789@db", "xyzXYZ789"},
		{"an identifier", "uuidv4", "0f1e2d3c-0000", "0f1e2d3c-0000", "aaaabbbb-1111", "aaaabbbb-1111"},
		{"a certificate", "genCA", pair, certificate, other, map[string]string{"Cert": other, "Key": "k"}},
		{"a key", "genPrivateKey", certificate, certificate, other, other},
		{"the same", "randAlphaNum", "abcDEF123", "abcDEF123", "abcDEF123", nil},
		{"another length", "randAlphaNum", "abcDEF123", "abcDEF123", "xyzXYZ7890", nil},
		{"another text around it", "randAlphaNum", "abcDEF123", "db://me:abcDEF123@db", "db://me:xyzXYZ789@cb", nil},
		{"what is not drawn so", "randNumeric", "123456", "123456", "12345a", nil},
		{"what breaks out of a template", "randAlphaNum", "abcDEF123", "abcDEF123", "a\n---\na: ", nil},
		{"what is free", "randAscii", "abcDEF123", "abcDEF123", "xyzXYZ789", nil},
		{"too short", "randNumeric", "1", "a1", "a2", nil},
		{"no certificate", "genCA", pair, certificate, "text", nil},
		{"nothing for a certificate", "genCA", pair, certificate, "", nil},
		{"a certificate with something before it", "genCA", pair, certificate, "a: b\n" + other, nil},
		{"a certificate with headers", "genCA", pair, certificate, "-----BEGIN CERTIFICATE-----\na: b\n\nAwQF\n-----END CERTIFICATE-----\n", nil},
		{"a number", "randInt", 123456, "123456", "654321", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			value, err := json.Marshal(test.value)
			if err != nil {
				t.Fatal(err)
			}
			m := &chart.GeneratedValues{Values: []chart.GeneratedValue{{Function: "now", Value: json.RawMessage(`broken`)}, {Function: test.function, Value: value}}}
			want := value
			if test.want != nil {
				want, _ = json.Marshal(test.want)
			}
			if recovered := m.Recover(test.rendered, test.live); recovered != (test.want != nil) || string(m.Values[1].Value) != string(want) {
				t.Errorf("recovered %t: %s, want %s", recovered, m.Values[1].Value, want)
			}
		})
	}
}
