package page

import "testing"

// TestValuesGroupID: groups whose names differ in a separator only have ids of their own.
func TestValuesGroupID(t *testing.T) {
	ids := map[string]string{}
	for _, name := range []string{ValuesGroup("web", "db-auth.user"), ValuesGroup("web-db", "auth.user"), ValuesGroup("web", "db_auth.user"), ValuesGroup("web", "user")} {
		if other, there := ids[ValuesGroupID(name)]; there {
			t.Errorf("%s has the id of %s", name, other)
		}
		ids[ValuesGroupID(name)] = name
	}
}
