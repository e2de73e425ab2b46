package versions_test

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build/sbom/versions"
)

// orders are versions of each type, the oldest first; those between "=" are the same.
var orders = map[string][]string{
	"deb": {
		"0~~", "0~~a", "0~", "0", "0a", "0+", "0.9-0~bpo1", "0.9 = 0.09 = 00.9 = 0.9-0 = 0.9-00", "0.9-1~bpo1", "0.9-1 = 0:0.9-1 = 0.9-01", "0.9-1+b1", "0.9-1.1", "0.9.1",
		"0.10", "1.0~beta1~svn1245", "1.0~beta1", "1.0", "1.0a", "1.0a1", "1.0+dfsg", "1.0.1", "1.2.3-1ubuntu1", "1.2.3-2", "3.0.11-1~deb12u2", "3.0.15-1~deb12u1",
		"20240203", "1:0.1", "1:1.0-1-2", "2:0.0.1",
	},
	"rpm": {
		"1.0~rc1", "1.0~rc1^git1", "1.0~rc2", "1.0 = 1_0 = 01.0 = 1.00", "1.0^", "1.0^git1~pre", "1.0^git1", "1.0^git2", "1.0.a", "1.0.1", "1.0.1a", "1.0.2", "1.0.10",
		"2.0-1.el8", "2.0-1.el9", "2.0-10.el8", "2.0.1", "2.1xyz", "2.1.1", "2.50 = 2.0050", "5.5p1", "5.5p2", "5.5p10", "10a1", "10b1", "10xyz", "10.0001 = 10.1", "10.39",
		"2010", "1:0.1",
	},
	"apk": {
		"0.1.0_alpha_pre2", "0.1.0_alpha", "0.1.0_alpha2", "0.1.0_beta", "0.1.0_rc1", "0.1.0", "0.1.0_git20240101", "0.1.0_p1", "0.1.0_p10", "0.1.0a", "0.1.0b_rc1", "0.1.0b",
		"1.0", "1.0-r0 = 1.0-r00", "1.0-r3", "1.0-r10", "1.0.0", "1.01", "1.02-r1", "1.1", "1.1.1w-r0", "1.3-r0", "1.3.1-r0", "1.10", "3.1.4-r5", "20240226-r0",
	},
	"npm": {
		"1.0.0-0", "1.0.0-1", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
		"1.0.0 = 1.0.0+build.5 = v1.0.0 = 1.0 = 1", "1.0.1", "1.9.0", "1.10.0", "2.0.0-x-y-z.1", "2.0.0",
	},
	"cargo": {"0.1.0", "0.9.10", "0.10.2", "1.0.0-alpha.2", "1.0.0-beta.10", "1.0.0 = 1.0.0+spec-1.1.0", "1.0.203"},
	"golang": {
		"v0.0.0-20190101000000-abcdefabcdef", "v0.0.0-20200101000000-abcdefabcdef", "v0.17.0", "v0.33.0 = 0.33.0", "1.21", "1.22beta1", "1.22rc1", "1.22rc2", "1.22 = 1.22.0",
		"1.22.10", "v2.0.0-rc.1+incompatible", "v2.0.0+incompatible",
	},
	"pypi": {
		"1.0.dev456", "1.0a1 = 1.0.alpha-1 = 1.0_A1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456", "1.0b2", "1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456",
		"1.0rc1 = 1.0c1 = 1.0pre1", "1.0 = 1 = v1.0.0 = 0!1.0", "1.0+abc.5", "1.0+abc.7", "1.0+5", "1.0.post456.dev34", "1.0.post456 = 1.0-456 = 1.0rev456", "1.0.15", "1.1.dev1",
		"1.1.dev2", "1.1", "2024.2.2", "1!0.1",
	},
	"maven": {
		"1-alpha-1 = 1-a1", "1-alpha-2", "1-beta-1 = 1-b1", "1-milestone-1 = 1-m1", "1-rc = 1-cr", "1-snapshot = 1-SNAPSHOT", "1 = 1.0 = 1.0.0 = 1-ga = 1.ga = 1-final = 1.0.Final = 1-0",
		"1-sp", "1-sp-1 = 1-sp1", "1-abc", "1-xyz", "1-1", "1-1.1", "1-2", "1.0.1", "1.2", "1.10", "2.0-rc1", "2.0", "2.0.1-xyz", "2.0.1-123",
	},
}

func TestCompare(t *testing.T) {
	for typ, order := range orders {
		t.Run(typ, func(t *testing.T) {
			for i, left := range order {
				for j, right := range order {
					for a := range strings.SplitSeq(left, " = ") {
						for b := range strings.SplitSeq(right, " = ") {
							got, err := versions.Compare(typ, a, b)
							if want := cmp.Compare(i, j); sign(got) != want || err != nil {
								t.Errorf("%s, %s: %d, want %d (%v)", a, b, sign(got), want, err)
							}
						}
					}
				}
			}
		})
	}
}

func sign(n int) int { return cmp.Compare(n, 0) }

// TestCompareLikeTheirPrograms compares the order of this package with those of dpkg and rpm, where they are installed.
func TestCompareLikeTheirPrograms(t *testing.T) {
	programs := map[string]func(a, b string) *exec.Cmd{
		"deb": func(a, b string) *exec.Cmd {
			return exec.CommandContext(t.Context(), "dpkg", "--compare-versions", a, "lt", b)
		},
		"rpm": func(a, b string) *exec.Cmd {
			return exec.CommandContext(t.Context(), "sh", "-c", `[ "$(rpm --eval "%{lua: print(rpm.vercmp('$1', '$2'))}")" = -1 ]`, "sh", a, b)
		},
	}
	for typ, program := range programs {
		t.Run(typ, func(t *testing.T) {
			if _, err := exec.LookPath(map[string]string{"deb": "dpkg", "rpm": "rpm"}[typ]); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skip("the program is not installed")
			}
			order := orders[typ]
			for i := range order[1:] {
				a, _, _ := strings.Cut(order[i], " = ")
				b, _, _ := strings.Cut(order[i+1], " = ")
				if err := program(a, b).Run(); err != nil {
					t.Errorf("the program does not take %s for older than %s", a, b)
				}
			}
		})
	}
}

func TestCompareRefuses(t *testing.T) {
	for _, test := range []struct{ typ, version string }{
		{"deb", ""},
		{"deb", "a:1"},
		{"deb", "1 2"},
		{"deb", "-1"},
		{"deb", "1_2"},
		{"deb", "ü"},
		{"rpm", "1:"},
		{"rpm", "x:1"},
		{"apk", "a"},
		{"apk", "1_foo"},
		{"apk", "1-1"},
		{"apk", "1."},
		{"npm", "1.2.3.4"},
		{"npm", "latest"},
		{"npm", "1.0.0-"},
		{"npm", "1.0.0-a..b"},
		{"npm", "1.0.0-a_b"},
		{"golang", "(devel)"},
		{"golang", "1.22x1"},
		{"pypi", "1.0-foo"},
		{"pypi", "french toast"},
		{"pypi", "1.0+"},
		{"pypi", "!1"},
		{"gem", "1"},
		{"npm", strings.Repeat("1", 1000)},
	} {
		if _, err := versions.Compare(test.typ, test.version, "1.0"); err == nil {
			t.Errorf("%s %q was compared", test.typ, test.version)
		}
	}
}

func TestRange(t *testing.T) {
	for _, test := range []struct{ typ, set, inside, outside string }{
		{"deb", "<3.0.15", "3.0.14-1 3.0.11-1~deb12u2 1:3.0.14-1", "3.0.15-1 3.0.15 4:3.1"},
		{"deb", "<1:3.0.15", "3.0.20 1:3.0.14", "1:3.0.15 2:1"},
		{"rpm", "<3.0.15", "1:3.0.7-27.el9 3.0.14", "3.0.15-1.el9 1:3.0.15-1.el9"},
		{"rpm", "<=3.0.7", "3.0.7-27.el9", "3.0.8-1"},
		{"npm", ">=1.0.0|<1.2.3", "1.0.0 1.2.2", "0.9.0 1.2.3 2.0.0"},
		{"npm", "<1.2.3|>=1.0.0", "1.0.0 1.2.2", "0.9.0 1.2.3"},
		{"npm", ">=1.0.0|<1.2.3|>=2.0.0|<2.1.0", "1.1.0 2.0.5", "1.5.0 2.1.0"},
		{"npm", "<1.0.0|>2.0.0", "0.1.0 2.0.1", "1.0.0 2.0.0"},
		{"npm", ">=1.0.0|!=1.5.0|<2.0.0", "1.4.0", "1.5.0 2.0.0"},
		{"npm", "1.0.0|2.0.0", "1.0.0 2.0.0 v1.0.0", "1.5.0"},
		{"npm", "!=1.0.0", "1.0.1", "1.0.0"},
		{"npm", ">1.0.0", "1.0.1", "1.0.0"},
		{"pypi", "*", "1.0 anything", ""},
		{"golang", "<0.33.0", "v0.32.0", "v0.33.0"},
	} {
		set, err := versions.ParseRange(test.typ, test.set)
		if err != nil {
			t.Errorf("%s %s: %v", test.typ, test.set, err)
			continue
		}
		for want, list := range map[bool]string{true: test.inside, false: test.outside} {
			for version := range strings.FieldsSeq(list) {
				if got, err := set.Contains(version); got != want || err != nil {
					t.Errorf("%s in %s: %v, want %v (%v)", version, set, got, want, err)
				}
			}
		}
	}
}

func TestRangeRefuses(t *testing.T) {
	for _, set := range []string{"<", "<>1", ">=1.0.0|>2.0.0", "<1.0.0|<2.0.0", "1.0.0|1.0", "=<1", "<latest", "|", "*|1.0.0", strings.Repeat("1.0.0|", 100) + "1.0.0"} {
		if r, err := versions.ParseRange("npm", set); err == nil {
			t.Errorf("%q was read as %s", set, r)
		}
	}
}

// FuzzCompare proves that the order of any two versions is the same from both sides, and that a version is equal to itself.
func FuzzCompare(f *testing.F) {
	for typ, order := range orders {
		f.Add(typ, order[0], order[1])
	}
	f.Fuzz(func(t *testing.T, typ, a, b string) {
		forth, err := versions.Compare(typ, a, b)
		back, failure := versions.Compare(typ, b, a)
		if (err == nil) != (failure == nil) || err == nil && sign(forth) != -sign(back) {
			t.Errorf("%s %q %q: %d, %d (%v, %v)", typ, a, b, forth, back, err, failure)
		}
		if same, err := versions.Compare(typ, a, a); err == nil && same != 0 {
			t.Errorf("%s %q is not equal to itself: %d", typ, a, same)
		}
	})
}
