package console_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestDuration(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0ms"},
		{350 * time.Millisecond, "350ms"},
		{999_600 * time.Microsecond, "1.0s"},
		{2100 * time.Millisecond, "2.1s"},
		{59_990 * time.Millisecond, "1m00s"},
		{80 * time.Second, "1m20s"},
		{3_599_900 * time.Millisecond, "1h00m"},
		{26*time.Hour + 5*time.Minute, "26h05m"},
		{-2 * time.Second, "-2.0s"},
	} {
		if got := report.Duration(test.d); got != test.want {
			t.Errorf("Duration(%s) = %q, want %q", test.d, got, test.want)
		}
	}
}

// TestTableFits: a column more is for terminals with room for it.
func TestTableFits(t *testing.T) {
	table := &console.Table{Columns: []string{"NAME", "SIGNED BY"}}
	table.Add("storage", "acme-release, site")
	for width, want := range map[int]bool{0: false, 26: false, 27: true, 200: true} {
		if table.Fits(&console.Stream{Width: width}) != want {
			t.Errorf("%d columns: it fits is %t", width, !want)
		}
	}
}

func TestTable(t *testing.T) {
	table := &console.Table{Columns: []string{"NAME", "VERSION", "DESCRIPTION"}}
	table.Add("storage", "1.0.0", "a distributed storage for everything that does not fit elsewhere")
	table.Add("日本", "10.0.0-rc.1")
	table.Add("evil\x1b[2J\nname", "1", "x")
	for _, test := range []struct {
		name  string
		width int
		want  []string
	}{
		{"pipe", 0, []string{
			`NAME                VERSION      DESCRIPTION`,
			`storage             1.0.0        a distributed storage for everything that does not fit elsewhere`,
			`日本                10.0.0-rc.1`,
			`evil\u001b[2J name  1            x`,
		}},
		{"terminal", 64, []string{
			`NAME                VERSION      DESCRIPTION`,
			`storage             1.0.0        a distributed storage for`,
			`                                 everything that does not fit`,
			`                                 elsewhere`,
			`日本                10.0.0-rc.1`,
			`evil\u001b[2J name  1            x`,
		}},
		{"a terminal as wide as two columns", 40, []string{
			`NAME           VERSION      DESCRIPTION`,
			`storage        1.0.0        a`,
			`                            distributed`,
			`                            storage for`,
			`                            everything`,
			`                            that does`,
			`                            not fit`,
			`                            elsewhere`,
			`日本           10.0.0-rc.1`,
			`evil\u001b[2J  1            x`,
			`name`,
		}},
		{"narrower than the columns can be", 10, []string{
			`NAME          VERSION      DESCRIPTION`,
			`storage       1.0.0        a`,
			`                           distributed`,
			`                           storage for`,
			`                           everything`,
			`                           that does`,
			`                           not fit`,
			`                           elsewhere`,
			`日本          10.0.0-rc.1`,
			`evil\u001b[2  1            x`,
			`J name`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			table.Print(&console.Stream{Writer: &out, Width: test.width})
			if diff := cmp.Diff(test.want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTableCutsWordsThatDoNotFit(t *testing.T) {
	var out bytes.Buffer
	table := &console.Table{Columns: []string{"DIGEST"}}
	table.Add("sha256:" + strings.Repeat("0123456789", 3))
	table.Print(&console.Stream{Writer: &out, Width: 20})
	if got, want := out.String(), "DIGEST\nsha256:0123456789012\n34567890123456789\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTableFitsTheTerminal wraps names behind the marks that join their parts.
func TestTableFitsTheTerminal(t *testing.T) {
	var out bytes.Buffer
	table := &console.Table{Columns: []string{"LAST", "OBJECT", "MESSAGE"}}
	table.Add("5m", "Pod/example-namespace/example-solution-operator-5f6b7c8d9-abcde", "Back-off restarting failed container operator in pod example-solution")
	table.Print(&console.Stream{Writer: &out, Width: 60})
	want := `LAST  OBJECT                      MESSAGE
5m    Pod/example-namespace/      Back-off restarting failed
      example-solution-operator-  container operator in pod
      5f6b7c8d9-abcde             example-solution
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBarLineLeavesOutWhatDoesNotFit(t *testing.T) {
	for _, test := range []struct {
		name        string
		done, total int64
		width       int
		want        string
	}{
		{"wide", 5 << 20, 10 << 20, 90, "pull ui:1.0.0                   [=========>         ]  50%  5.0 MiB / 10.0 MiB   2.5 MiB/s"},
		{"no speed", 5 << 20, 10 << 20, 80, "pull ui:1.0.0                     [=========>         ]  50%  5.0 MiB / 10.0 MiB"},
		{"no bar", 5 << 20, 10 << 20, 40, "pull ui:1.0.0    50%  5.0 MiB / 10.0 MiB"},
		{"label only", 5 << 20, 10 << 20, 20, "pull ui:1.0.0"},
		{"half a label", 5 << 20, 10 << 20, 5, "pull…"},
		{"nothing", 5 << 20, 10 << 20, 0, ""},
		{"finished", 10 << 20, 10 << 20, 80, "pull ui:1.0.0                     [===================] 100% 10.0 MiB / 10.0 MiB"},
		{"more than promised", 11 << 20, 10 << 20, 80, "pull ui:1.0.0                     [===================] 100% 11.0 MiB / 10.0 MiB"},
		{"total unknown", 5 << 20, 0, 60, "pull ui:1.0.0                  5.0 MiB   2.5 MiB/s"},
		{"no amount", 0, 0, 60, "pull ui:1.0.0                  2.0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := console.BarLine(report.Event{Step: "pull", Name: "ui:1.0.0", Done: test.done, Total: test.total}, 2*time.Second, test.width)
			if got != test.want {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
			if n := console.TextWidth(got); n > test.width {
				t.Errorf("%d columns, want at most %d", n, test.width)
			}
		})
	}
}

func TestBarLineShowsWait(t *testing.T) {
	for _, test := range []struct {
		name  string
		event report.Event
		width int
		want  string
	}{
		{"objects", report.Event{Step: "apply", Name: "demo", Done: 5, Total: 10, Unit: "objects"}, 80, "apply demo                            [=========>         ]  50% 5 of 10 objects"},
		{"one object", report.Event{Step: "apply", Name: "demo", Done: 1, Total: 1, Unit: "objects"}, 80, "apply demo                              [===================] 100% 1 of 1 object"},
		{"objects without a total", report.Event{Step: "apply", Name: "demo", Done: 5, Unit: "objects"}, 60, "apply demo                     5 objects"},
		{"note", report.Event{Step: "wait", Name: "demo", Note: "Deployment web: 0 of 1 pods are ready"}, 80, "wait demo: Deployment web: 0 of 1 pods are ready                            2.0s"},
		{"note and amount", report.Event{Step: "wait", Name: "demo", Done: 2, Total: 3, Unit: "objects", Note: "Deployment web"}, 50, "wait demo: Deployment web       66% 2 of 3 objects"},
		{"long note", report.Event{Step: "wait", Name: "demo", Note: "pod web: container app: image not found"}, 30, "wait demo: pod web: cont… 2.0s"},
		{"hostile note", report.Event{Step: "wait", Note: "a\x1b[2J\nb"}, 40, `wait: a\u001b[2J b                  2.0s`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := console.BarLine(test.event, 2*time.Second, test.width)
			if got != test.want {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
			if n := console.TextWidth(got); n > test.width {
				t.Errorf("%d columns, want at most %d", n, test.width)
			}
		})
	}
}

func TestStreamOfAFileIsPlain(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	s := console.NewStream(file, func(string) string { return "" })
	if s.TTY || s.Color || s.Width != 0 {
		t.Errorf("a file is taken for a terminal: %+v", s)
	}
	if got := s.Paint(console.Red, "text"); got != "text" {
		t.Errorf("Paint = %q on a stream without colours", got)
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{ writes int }

func (d *fullDisk) Write([]byte) (int, error) {
	d.writes++
	return 0, errFull
}

// TestPrintReturnsTheFirstError: what prints need not look at errors, and nothing is written behind one.
func TestPrintReturnsTheFirstError(t *testing.T) {
	table := &console.Table{Columns: []string{"NAME"}}
	for name, print := range map[string]func(*console.Stream){
		"table":   table.Print,
		"finding": func(s *console.Stream) { console.PrintFinding(s, report.Finding{Message: "x"}, "") },
		"remarks": func(s *console.Stream) { console.PrintEach(s, console.Yellow, "note:", []string{"first", "second"}) },
		"fail":    func(s *console.Stream) { s.Fail(errFull); fmt.Fprint(s, "more") },
	} {
		disk := &fullDisk{}
		if err := (&console.Stream{Writer: disk}).Print(print); !errors.Is(err, errFull) || disk.writes > 1 {
			t.Errorf("%s: %v after %d writes", name, err, disk.writes)
		}
	}
	var out strings.Builder
	if err := (&console.Stream{Writer: &out}).Print(table.Print); err != nil || out.String() != "NAME\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

var findings = []report.Finding{
	{
		Rule: "SOL001", Severity: report.SeverityError, Path: "manifest.yaml", Line: 4, Column: 12,
		Object: "spec.version", Message: `"v1" is not a semantic version`, Hint: "write 1.0.0",
	},
	{Rule: "SOL002", Severity: report.SeverityWarning, Message: "no image\r is used"},
}

func TestPrintFindingInColor(t *testing.T) {
	var out bytes.Buffer
	for _, finding := range findings {
		console.PrintFinding(&console.Stream{Writer: &out, Color: true}, finding, "")
	}
	want := "\x1b[1mmanifest.yaml:4:12:\x1b[0m \x1b[31merror:\x1b[0m spec.version: \"v1\" is not a semantic version \x1b[2m[SOL001]\x1b[0m\n" +
		"    \x1b[36mhint:\x1b[0m write 1.0.0\n" +
		"\x1b[33mwarning:\x1b[0m no image\\u000d is used \x1b[2m[SOL002]\x1b[0m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func ExamplePrintFinding() {
	finding := report.Finding{Rule: "SOL001", Severity: report.SeverityError, Path: "manifest.yaml", Line: 4, Message: "not a version", Hint: "write 1.0.0"}
	console.PrintFinding(&console.Stream{Writer: os.Stdout}, finding, "")
	fmt.Println(console.CountFindings([]report.Finding{finding}))
	// Output:
	// manifest.yaml:4: error: not a version [SOL001]
	//     hint: write 1.0.0
	// 1 error
}

func ExampleTable() {
	table := &console.Table{Columns: []string{"IMAGE", "SIZE"}}
	table.Add("ui:1.0.0", report.Bytes(3<<19))
	table.Print(&console.Stream{Writer: os.Stdout})
	// Output:
	// IMAGE     SIZE
	// ui:1.0.0  1.5 MiB
}

func TestText(t *testing.T) {
	for _, test := range []struct {
		color      bool
		text, want string
	}{
		{false, "plain\tand\nlines\n", "plain\tand\nlines\n"},
		{false, "a\x1b[2Jb\x1b[31mc", `a\u001b[2Jb\u001b[31mc`},
		{false, "x\u202egnp.iso \u2066 \x9b \xff", `x\u202egnp.iso \u2066 \x9b \xff`},
		{true, "\x1b[31mred\x1b[0m \x1b[8mhidden \x1b]0;title\a", "\x1b[31mred\x1b[0m " + `\u001b[8mhidden \u001b]0;title\u0007`},
		{true, "", ""},
	} {
		var out strings.Builder
		s := (&console.Stream{Writer: &out, Color: test.color}).Text()
		if n, err := s.Write([]byte(test.text)); n != len(test.text) || err != nil || out.String() != test.want {
			t.Errorf("%q: wrote %q (%d, %v), want %q", test.text, out.String(), n, err, test.want)
		}
	}
}

func TestPrintEach(t *testing.T) {
	var text strings.Builder
	remarks := []string{"the first", "the \x1b[2Jsecond"}
	console.PrintEach(&console.Stream{Writer: &text}, console.Yellow, "note:", remarks)
	if want := "note: the first\nnote: the " + console.Clean("\x1b[2J") + "second\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
}

// TestWriteWrapped breaks lines at spaces, below their last column, and leaves commands whole.
func TestWriteWrapped(t *testing.T) {
	const text = "A sentence that is too wide for this terminal.\n\n  init    Create a project that builds, from what you have\n" +
		"  tool build shop --sign-key acme.key --to dist\n      --flag FILE   read FILE before everything else is read\n"
	const want = "A sentence that is too wide for this\nterminal.\n\n  init    Create a project that\n          builds, from what you have\n" +
		"  tool build shop --sign-key acme.key --to dist\n      --flag FILE   read FILE before\n                    everything else\n                    is read\n"
	for width, want := range map[int]string{0: text, 36: want} {
		var out strings.Builder
		if err := (&console.Stream{Writer: &out, Width: width}).WriteWrapped(text, "tool "); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
}
