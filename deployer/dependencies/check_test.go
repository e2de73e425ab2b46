package dependencies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// inTest is a namespace of environment test.
var inTest = metalk8s.Namespace{Name: "test", Environment: "test"}

// held makes holdings of words such as "shop-1.0.0", in environment test, and "@dns-1.0.0", active in the cluster.
func held(text string) Holdings {
	h := Holdings{}
	for word := range strings.FieldsSeq(text) {
		name, inCluster := strings.CutPrefix(word, "@")
		solution, version, _ := strings.Cut(name, "-")
		if inCluster {
			h[Holder{Solution: solution}] = version
		} else {
			h[Holder{Environment: "test", Namespace: "test", Solution: solution}] = version
		}
	}
	return h
}

func TestCheck(t *testing.T) {
	shop := []string{"shop 1.0.0: db >=1 <2", "shop 2.0.0: db >=2", "db 1.0.0", "db 2.0.0", "other 1.0.0"}
	wide := []string{"shop 1.0.0: dns >=1 in cluster", "dns 1.0.0"}
	active := func(text string) func(Holdings) {
		solution, version, _ := strings.Cut(text, "-")
		return Activate(nil, schema.SolutionAt{Solution: solution, Version: version})
	}
	for _, test := range []struct {
		name    string
		catalog []string
		held    string
		change  func(Holdings)
		code    report.Code
		message string // a part of it
		hint    string
	}{
		{"nothing that needs anything", shop, "", Put("other", "1.0.0", inTest), "", "", ""},
		{"what it needs is there", shop, "db-1.0.0", Put("shop", "1.0.0", inTest), "", "", ""},
		{"what it needs is not there", shop, "", Put("shop", "1.0.0", inTest), report.Refused, "needs db >=1 <2: it is not there", "solutionctl deploy add test db 1.0.0"},
		{"another version is there", shop, "db-1.0.0", Put("shop", "2.0.0", inTest), report.Refused, "there is 1.0.0", "solutionctl deploy upgrade test db 2.0.0"},
		{"a lower version is needed", shop, "db-2.0.0", Put("shop", "1.0.0", inTest), report.Refused, "there is 2.0.0", "solutionctl deploy downgrade test db 1.0.0"},
		{"no version was imported", []string{"shop 1.0.0: db >=3", "db 1.0.0"}, "", Put("shop", "1.0.0", inTest), report.Refused, "needs db >=3", "import a version of db >=3 first"},
		{"others need it", shop, "db-1.0.0 shop-1.0.0", Put("db", "", inTest), report.InUse, "shop 1.0.0 in environment test needs db", "first: solutionctl deploy remove test shop"},
		{"others need it as it is", shop, "db-1.0.0 shop-1.0.0", Put("db", "2.0.0", inTest), report.InUse, "shop 1.0.0", "change both together: solutionctl deploy upgrade test db 2.0.0 --with shop=2.0.0"},
		{"neither can be first", shop, "db-1.0.0 shop-1.0.0", Put("shop", "2.0.0", inTest), report.Refused, "neither can change before the other", "solutionctl deploy upgrade test shop 2.0.0 --with db=2.0.0"},
		{"everything goes", shop, "db-1.0.0 shop-1.0.0", Empty([]metalk8s.Namespace{inTest}), "", "", ""},
		{"what was missing before is no reason", shop, "shop-1.0.0", Put("other", "1.0.0", inTest), "", "", ""},
		{"it is not active", wide, "", Put("shop", "1.0.0", inTest), report.Refused, "needs dns >=1 to be active: it is not there", "solutionctl deploy activate dns 1.0.0"},
		{"to be active it needs nothing in an environment", shop, "", active("shop-1.0.0"), "", "", ""},
		{"others need it to be active", wide, "@dns-1.0.0 shop-1.0.0", active("dns-"), report.InUse, "shop 1.0.0 in environment test needs dns", "first: solutionctl deploy remove test shop"},
		{"they need each other", []string{"a 1.0.0: b", "b 1.0.0: a"}, "", Put("a", "1.0.0", inTest), report.Refused, "a → b → a", "report it to the vendor"},
		{"they need each other to be active", []string{"a 1.0.0: b in cluster", "b 1.0.0: a in cluster"}, "", active("a-1.0.0"), report.Refused, "a → b → a", "solutionctl deploy apply -f FILE"},
		{"active needs active", []string{"a 1.0.0: b in cluster", "b 1.0.0"}, "@a-1.0.0 @b-1.0.0", active("b-"), report.InUse, "a 1.0.0 needs b", "solutionctl deploy deactivate a"},
		{"an invalid range", []string{"a 1.0.0: b ?"}, "", Put("a", "1.0.0", inTest), report.Invalid, "dependsOn b", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := held(test.held)
			err := Check(dependent(test.catalog...), before, test.change)
			if report.CodeOf(err) != test.code && (err != nil || test.code != "") {
				t.Fatalf("%s, want %s: %v", report.CodeOf(err), test.code, err)
			}
			if text := fmt.Sprint(err); !strings.Contains(text, test.message) {
				t.Errorf("got %q, want %q", text, test.message)
			}
			if hints := strings.Join(report.Hints(err), "\n"); !strings.Contains(hints, test.hint) {
				t.Errorf("the hint is %q, want %q", hints, test.hint)
			}
			if fmt.Sprint(before) != fmt.Sprint(held(test.held)) {
				t.Errorf("it changed what is held: %v", before)
			}
		})
	}
}
