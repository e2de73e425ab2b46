package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/solutionctl/solutionctl/schema"
)

// TestDecodedAsJSON: objects have the types that Kubernetes' decoder gives them, which copies of them and comparisons expect.
func TestDecodedAsJSON(t *testing.T) {
	const text = `
numbers: [0, -0.0, 1, -1, 1.0, 1.5, 1e3, 1e20, 1e21, 9223372036854775807, 9223372036854775808, 18446744073709551615, -9223372036854775808, 0x10, 0o17]
others: [true, null, text, "1", 2001-12-14, {a: {b: [1, {c: 2.0}]}}, [], {}]
`
	documents, err := schema.ParseKubernetes("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := documents[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err = json.Unmarshal(encoded, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded(documents[0].Value()), want); diff != "" {
		t.Errorf("-got +want\n%s", diff)
	}
}
