package scale_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/e2e/scale"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m, scale.Options) }

// metadata is how many bytes an environment or a node may add to the answers for a verb that is not about it: to find its names, a verb lists
// the metadata of records, or of nodes. A record has 2,000 at least, and a node 13,000.
const metadata = 1500

// most is how many requests a verb for one environment makes at most, with three imported versions of a Solution of six objects: each has a request
// for its payload. Requests for locks and those to wait for pods are left out, because their number depends on the time.
var most = map[string]int{
	"env create": 10, "plan add": 23, "add": 33, "add again": 20, "upgrade": 40, "downgrade": 41, "rollback": 36, "remove": 56, "env delete": 44,
}

// steady adds up the requests whose number does not depend on the time.
func steady(counts map[string]proxy.Count) (requests int) {
	for kind, count := range counts {
		verb, resource, _ := strings.Cut(kind, " ")
		waits := verb == "watch" || strings.Contains(kind, "pods") || strings.Contains(kind, "replicasets") ||
			(verb == "get" || verb == "list") && strings.HasPrefix(resource, "deployments")
		if !waits && !strings.HasSuffix(kind, " leases") {
			requests += count.Requests
		}
	}
	return requests
}

// TestGrowth compares what verbs ask of the API server on a small site with what they ask when it has more environments, and then more nodes. In
// short mode it leaves out most verbs for all environments.
func TestGrowth(t *testing.T) {
	t.Parallel()
	c := testcluster.Shared(t)
	dir := t.TempDir()
	site, err := scale.New(t.Context(), dir, testcluster.Program(t, c.Dir), c)
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	const few, many = 2, 12
	const fewNodes, manyNodes = 20, 50 // a plan reads sixteen
	measure := func(environments, nodes int) map[string]map[string]proxy.Count {
		t.Helper()
		if err := site.Grow(t.Context(), environments, nodes); err != nil {
			t.Fatal(err)
		}
		counts := map[string]map[string]proxy.Count{}
		for _, verb := range scale.Verbs {
			if testing.Short() && verb.Of != scale.OfOne && verb.Name != "node preload of one node, planned" {
				continue
			}
			site.Counts()
			if output, err := site.Command(t.Context(), verb.Line).CombinedOutput(); err != nil && !verb.MayFail {
				t.Fatalf("%s: %v\n%s", verb.Line, err, output)
			}
			counts[verb.Name] = site.Counts()
		}
		return counts
	}
	small, apart, large := measure(few, fewNodes), measure(many, fewNodes), measure(many, manyNodes)
	for _, verb := range scale.Verbs {
		if small[verb.Name] == nil {
			continue
		}
		t.Run(verb.Name, func(t *testing.T) {
			if limit := most[verb.Name]; limit > 0 {
				for _, counts := range []map[string]proxy.Count{small[verb.Name], apart[verb.Name], large[verb.Name]} {
					got := steady(counts)
					if t.Logf("%d requests", got); got > limit {
						t.Errorf("%d requests, want %d at most: %v", got, limit, counts)
					}
				}
			}
			if verb.Of == scale.OfOne {
				compare(t, "environment", small[verb.Name], apart[verb.Name], many-few)
			}
			if verb.Of == scale.OfOne || verb.Of == scale.OfEnvironments {
				compare(t, "node", apart[verb.Name], large[verb.Name], manyNodes-fewNodes)
			}
		})
	}
}

// compare expects as many lists on a larger site, and hardly longer answers.
func compare(t *testing.T, what string, from, to map[string]proxy.Count, added int) {
	t.Helper()
	bytes := int64(0)
	for kind, count := range to {
		if strings.HasPrefix(kind, "list ") && count.Requests > from[kind].Requests {
			t.Errorf("%d times %q, %d before there was another %s", count.Requests, kind, from[kind].Requests, what)
		}
		if more := count.Bytes - from[kind].Bytes; more > 0 && strings.HasPrefix(kind, "list ") {
			bytes += more
			if each := more / int64(added); each > metadata && kind != "list pods of a node" { // of which a node has 110 at most
				t.Errorf("%q has %d bytes for each %s", kind, each, what)
			}
		}
	}
	t.Logf("%d bytes for each %s", bytes/int64(added), what)
}
