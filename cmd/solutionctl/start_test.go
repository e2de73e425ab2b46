package main

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What a package may allocate before main, in bytes. Time varies, allocations hardly do.
const (
	ownStart     = 16 << 10
	libraryStart = 150_000
)

// heavyLibraries allocate more than libraryStart. The list may only get shorter: docs/adr/0032-start-of-the-program.md has the reason
// of each.
var heavyLibraries = []string{
	"github.com/Masterminds/semver/v3",
	"github.com/asaskevich/govalidator",
	"github.com/distribution/reference",
	"github.com/go-openapi/strfmt",
	"github.com/google/go-cmp/cmp",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"google.golang.org/protobuf/reflect/protodesc",
	"k8s.io/component-base/metrics/legacyregistry",
	"k8s.io/kube-openapi/pkg/validation/strfmt",
}

// TestStart reads what each package allocates while the program starts, which every call pays. Of several starts the least counts: the
// tables of others, which packages register with, grow during the start of any of them.
func TestStart(t *testing.T) {
	least := allocations(t)
	for range 4 {
		for name, size := range allocations(t) {
			least[name] = min(least[name], size)
		}
	}
	heavy := map[string]int{}
	for name, size := range least {
		// This package has the variables of its tests, too.
		own := strings.HasPrefix(name, module) && name != module+"/cmd/solutionctl"
		switch {
		case own && size > ownStart:
			t.Errorf("%s allocates %d bytes at each start, want at most %d: use sync.OnceValue or lazyregexp", name, size, ownStart)
		case !own && size > libraryStart:
			heavy[name] = size
		}
	}
	for _, name := range slices.Sorted(maps.Keys(heavy)) {
		if !slices.Contains(heavyLibraries, name) {
			t.Errorf("%s allocates %d bytes at each start: import a narrower package, or none of it", name, heavy[name])
		}
	}
	for _, name := range heavyLibraries {
		if heavy[name] == 0 {
			t.Errorf("%s allocates less than %d bytes at a start: take it off the list", name, libraryStart)
		}
	}
}

// TestStartCollectsNothing pins that package start is initialised before those that allocate so much that the garbage collector would run.
func TestStartCollectsNothing(t *testing.T) {
	collection := []byte("gc 1 @")
	if trace := traceStart(t, "GODEBUG=gctrace=1", "GOGC="); bytes.Contains(trace, collection) {
		t.Errorf("the garbage collector runs during the start:\n%s", trace)
	}
	if trace := traceStart(t, "GODEBUG=gctrace=1", "GOGC=50"); !bytes.Contains(trace, collection) {
		t.Errorf("no collection although GOGC=50 wants it early:\n%s", trace)
	}
}

// traceStart starts this program with these variables, and returns what the runtime writes.
func traceStart(t *testing.T, env ...string) []byte {
	t.Helper()
	start := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	start.Env = append(os.Environ(), env...)
	var trace bytes.Buffer
	start.Stderr = &trace
	if err := start.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &trace)
	}
	return trace.Bytes()
}

// allocations returns the bytes that each package allocates before main in one start.
func allocations(t *testing.T) map[string]int {
	t.Helper()
	trace := traceStart(t, "GODEBUG=inittrace=1")
	sizes := map[string]int{}
	line := regexp.MustCompile(`^init (\S+) @.* clock, (\d+) bytes, `)
	for lines := bufio.NewScanner(bytes.NewReader(trace)); lines.Scan(); {
		fields := line.FindStringSubmatch(lines.Text())
		if fields == nil {
			continue
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		sizes[fields[1]] = size
	}
	if len(sizes) < 100 {
		t.Fatalf("the trace has %d packages:\n%s", len(sizes), trace)
	}
	return sizes
}
