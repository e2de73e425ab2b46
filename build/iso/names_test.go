package iso

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestIdentifiers(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	for _, test := range []struct {
		name            string
		dir             bool
		primary, joliet string
	}{
		{"manifest.yaml", false, "MANIFEST.YAML;1", "manifest.yaml"},
		{"registry-config.inc.j2", false, "REGISTRY_CONFIG_INC.J2;1", "registry-config.inc.j2"},
		{"version", false, "VERSION.;1", "version"},
		{"1.0.0", true, "1_0_0", "1.0.0"},
		{"x.", false, "X.;1", "x_"},
		{"trailing ", true, "TRAILING_", "trailing_"},
		{"a:b*c?.d;e", false, "A_B_C_.D_E;1", "a_b_c_.d_e"},
		{"manıfest.yaml", false, "MAN_FEST.YAML;1", "manıfest.yaml"},
		{"日本語.txt", false, "___.TXT;1", "日本語.txt"},
		{"rocket🚀", false, "ROCKET_.;1", "rocket_"},
		{hex, false, strings.ToUpper(hex[:30]) + ".;1", hex},
		{hex, true, strings.ToUpper(hex[:31]), hex},
		{"a." + hex, false, "A.01234567;1", "a." + hex},
		{"abcdefghijklmnopqrstuvwxyz.dashboard", false, "ABCDEFGHIJKLMNOPQRSTUV.DASHBOAR;1", "abcdefghijklmnopqrstuvwxyz.dashboard"},
		{strings.Repeat("n", 200) + ".yaml", false, strings.Repeat("N", 26) + ".YAML;1", strings.Repeat("n", 98) + ".yaml"},
		{".hidden", false, "_HIDDEN.;1", ".hidden"}, // never written, but other writers do
	} {
		if got := primaryIdentifier(test.name, test.dir, 0); got != test.primary {
			t.Errorf("primaryIdentifier(%q) = %q, want %q", test.name, got, test.primary)
		}
		if got := jolietIdentifier(test.name, test.dir, 0); got != test.joliet {
			t.Errorf("jolietIdentifier(%q) = %q, want %q", test.name, got, test.joliet)
		}
	}
	if got, want := primaryIdentifier("manifest.yaml", false, 1), "MANIFEST000.YAML;1"; got != want {
		t.Errorf("serial 1: got %q, want %q", got, want)
	}
}

func TestSerials(t *testing.T) {
	many := make([]string, 3000)
	for i := range many {
		many[i] = fmt.Sprintf("%s-%04d.yaml", strings.Repeat("prefix", 20), i)
	}
	for _, test := range []struct {
		name  string
		tree  tree
		names []string // directories end in "/"
		want  []string // nil: only that all differ
	}{
		{"a name that needs no mangling keeps its identifier", primaryTree, []string{"a:b", "a_b"}, []string{"A_B000.;1", "A_B.;1"}},
		{"as text too", jolietTree, []string{"a:b.x", "a_b.x"}, []string{"a_b000.x", "a_b.x"}},
		{"dot of a missing extension", primaryTree, []string{"x", "x."}, []string{"X.;1", "X000.;1"}},
		{"file and directory", primaryTree, []string{"x-", "x_/"}, []string{"X_000.;1", "X_"}},
		{"a serial is taken already", primaryTree, []string{"a+b", "a-b", "a_b000"}, []string{"A_B.;1", "A_B001.;1", "A_B000.;1"}},
		{"3,000 equal prefixes", primaryTree, many, nil},
		{"3,000 equal prefixes in Joliet", jolietTree, many, nil},
		{"cut names that differ in case", jolietTree, []string{strings.Repeat("N", 110), strings.Repeat("n", 111)}, []string{strings.Repeat("N", 103), strings.Repeat("n", 100) + "000"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			siblings := make([]sibling, len(test.names))
			for i, name := range test.names {
				siblings[i] = sibling{strings.TrimSuffix(name, "/"), strings.HasSuffix(name, "/")}
			}
			var got []string
			seen := map[string]bool{}
			for i, serial := range test.tree.serials(siblings) {
				id := test.tree.identifier(siblings[i], serial)
				got = append(got, id)
				seen[foldName(test.tree.bare(id))] = true
			}
			if len(seen) != len(siblings) {
				t.Errorf("%d different identifiers for %d names", len(seen), len(siblings))
			}
			if test.want != nil && !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestComparePrimary(t *testing.T) {
	want := []string{"A", "A.B;1", "A.C;1", "A0.;1", "A0.B;1", "AB", "A_.;1"} // a plain comparison puts "A.B" after "A0.B"
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, comparePrimary)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFoldName(t *testing.T) {
	for _, same := range [][2]string{{"README", "readme"}, {"caf\u00e9", "cafe\u0301"}, {"STRASSE", "ſtraſse"}, {"É", "e\u0301"}} {
		if foldName(same[0]) != foldName(same[1]) {
			t.Errorf("%q and %q differ", same[0], same[1])
		}
	}
	if foldName("a") == foldName("b") {
		t.Error("a and b are the same")
	}
}

func TestNameProblem(t *testing.T) {
	for _, good := range []string{"a", strings.Repeat("x", 245), "日本語", "🚀", "a:b*c?", "1.0.0", "x."} {
		if problem := nameProblem(good); problem != "" {
			t.Errorf("%q: %s", good, problem)
		}
	}
	for _, bad := range []string{".a", "..", strings.Repeat("x", 246), "a\nb", "a\x7f", "a\u0085b", "\xff", `a\b`} {
		if nameProblem(bad) == "" {
			t.Errorf("%q is accepted", bad)
		}
	}
}
