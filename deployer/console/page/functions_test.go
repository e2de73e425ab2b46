package page

import "testing"

// TestIdent: words that differ in case or a separator only have ids of their own.
func TestIdent(t *testing.T) {
	if id := ident("import", "key"); id != "f-import-key" {
		t.Error(id)
	}
	ids := map[string][]string{}
	for _, words := range [][]string{
		{"step", "apply", "ClusterRole a:b"},
		{"step", "apply", "ClusterRole a-b"},
		{"step", "apply", "Deployment web/db-auth"},
		{"step", "apply", "Deployment web-db/auth"},
		{"spec.fooBar"},
		{"spec.foobar"},
		{"spec.foo.bar"},
		{"spec foobar"},
		{"spec", "foobar"},
		{"group", ValuesGroup("web", "db-auth.user")},
		{"group", ValuesGroup("web-db", "auth.user")},
		{"größe"},
		{"grösse"},
		{""},
		{"", ""},
		nil,
	} {
		id := ident(words...)
		if others, there := ids[id]; there {
			t.Errorf("%q has the id of %q", words, others)
		}
		ids[id] = words
	}
}
