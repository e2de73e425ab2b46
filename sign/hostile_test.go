package sign_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// ownWord are the fields of a statement that each signer may fill in differently: they say nothing about the archive.
var ownWord = []string{"_type", "subject.0.name", "predicate.createdAt", "predicate.expires"}

// oneValue are the fields that have one permitted value; TestVerifyBundle tries others.
var oneValue = []string{"predicateType", "predicate.chunks.algorithm"}

// forged is an archive with a statement about it, as a JSON document and by its fields.
type forged struct {
	data     []byte
	solution bundle.Solution
	manifest string
	payload  []byte
	fields   map[string]any // leaves, by their path
}

func forge(t *testing.T, data []byte, chunkSize int64, c sign.Claims, kind string) *forged {
	t.Helper()
	sums, err := chunk.Sum(t.Context(), bytes.NewReader(data), int64(len(data)), report.Discard)
	if err != nil {
		t.Fatal(err)
	}
	sums.Chunks = listOf(data, chunkSize)
	st, err := sign.NewStatement(sums, c)
	if err != nil {
		t.Fatal(err)
	}
	st.Type = kind
	payload, err := st.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	f := &forged{data: data, solution: c.Solution, manifest: c.ManifestDigest, payload: payload, fields: map[string]any{}}
	collect(f.fields, "", decode(t, payload))
	return f
}

func listOf(data []byte, chunkSize int64) chunk.List {
	list := chunk.List{Size: int64(len(data)), ChunkSize: chunkSize, Algorithm: "sha256"}
	for piece := range slices.Chunk(data, int(chunkSize)) {
		sum := hexSum(piece)
		var digest []byte
		_, _ = fmt.Sscanf(sum, "%x", &digest)
		list.Digests = append(list.Digests, digest...)
	}
	return list
}

func collect(fields map[string]any, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			collect(fields, path+"."+name, inner)
		}
	case []any:
		for i, inner := range value {
			collect(fields, fmt.Sprint(path, ".", i), inner)
		}
	default:
		fields[strings.TrimPrefix(path, ".")] = value
	}
}

// with returns the statement of f with some fields as they are in other.
func (f *forged) with(t *testing.T, other *forged, names []string) []byte {
	t.Helper()
	document := decode(t, f.payload)
	for _, name := range names {
		var at any = document
		path := strings.Split(name, ".")
		for _, part := range path[:len(path)-1] {
			if list, ok := at.([]any); ok {
				at = list[part[0]-'0']
			} else {
				at = at.(map[string]any)[part]
			}
		}
		at.(map[string]any)[path[len(path)-1]] = other.fields[name]
	}
	return encode(t, document)
}

// about reports whether the payload of a statement is true of an archive.
func (f *forged) about(t *testing.T, payload []byte) bool {
	t.Helper()
	fields := map[string]any{}
	collect(fields, "", decode(t, payload))
	for _, name := range ownWord {
		delete(fields, name)
	}
	for name, value := range fields {
		if !reflect.DeepEqual(f.fields[name], value) {
			return false
		}
	}
	return true
}

// selections are each field, each pair of fields that count, and the same the other way round: all fields but these.
func selections(names []string) [][]string {
	chosen := [][]string{names}
	for i, a := range names {
		chosen = append(chosen, []string{a}, without(names, a))
		for _, b := range names[i+1:] {
			if !slices.Contains(ownWord, a) && !slices.Contains(ownWord, b) {
				chosen = append(chosen, []string{a, b}, without(names, a, b))
			}
		}
	}
	return chosen
}

func without(names []string, out ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return slices.Contains(out, s) })
}

// TestOneOfManyIsHostile lets the holder of one trusted key sign every mixture of true statements about two archives,
// beside honest signatures of the first. Only signatures that are right about the archive at hand count, for any order
// of names.
func TestOneOfManyIsHostile(t *testing.T) {
	genuine, malicious := contents[:100<<10], contents[1<<20:1<<20+101<<10]
	honest := sign.Claims{
		Name: "g.iso", Solution: acmeDB, CreatedAt: now.Add(-time.Hour), Expires: now.AddDate(1, 0, 0),
		ManifestDigest: "sha256:" + strings.Repeat("a", 64),
	}
	evil := sign.Claims{
		Name: "m.iso", Solution: bundle.Solution{Name: "acme-evil", Version: "9.9.9"}, CreatedAt: now.Add(-time.Minute), Expires: now.AddDate(2, 0, 0),
		ManifestDigest: "sha256:" + strings.Repeat("b", 64),
	}
	const v1, v0 = "https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"
	g := forge(t, genuine, chunk.MinSize, honest, v1)
	for name, m := range map[string]*forged{
		"other chunks": forge(t, malicious, 2*chunk.MinSize, evil, v0),
		"same chunks":  forge(t, malicious[:len(genuine)], chunk.MinSize, evil, v0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name == "same chunks" {
				t.Skip("a long test: in short mode there are the mixtures with other chunks")
			}
			if name == "other chunks" {
				checkAllFieldsDiffer(t, g, m)
			}
			tryHostile(t, g, m)
		})
	}
}

// checkAllFieldsDiffer notices a field that is added to the statement and not to this test.
func checkAllFieldsDiffer(t *testing.T, g, m *forged) {
	t.Helper()
	for _, name := range leaves(reflect.TypeFor[bundle.Statement](), "") {
		if reflect.DeepEqual(g.fields[name], m.fields[name]) && !slices.Contains(oneValue, name) {
			t.Errorf("field %s of the statement is the same in both: the test does not try it", name)
		}
	}
}

func leaves(of reflect.Type, path string) []string {
	switch {
	case of == reflect.TypeFor[time.Time]() || of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		return []string{strings.TrimPrefix(path, ".")}
	case of.Kind() == reflect.Pointer:
		return leaves(of.Elem(), path)
	case of.Kind() == reflect.Slice:
		return leaves(of.Elem(), path+".0")
	case of.Kind() == reflect.Map:
		return leaves(of.Elem(), path+".sha256")
	case of.Kind() != reflect.Struct:
		return []string{strings.TrimPrefix(path, ".")}
	}
	var names []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "-" {
			names = append(names, leaves(field.Type, path+"."+name)...)
		}
	}
	return names
}

func tryHostile(t *testing.T, g, m *forged) {
	t.Helper()
	w := newWorld(t)
	w.keys["third"] = w.mallory.Public().PEM()
	w.policy = "rules: [{solutions: ['acme-*'], signers: [{key: acme}, {key: second}, {key: third}], threshold: THRESHOLD}]\n"
	stores := map[int]*trust.Store{}
	for threshold := 1; threshold <= 3; threshold++ {
		policy := w.policy
		w.policy = strings.Replace(policy, "THRESHOLD", fmt.Sprint(threshold), 1)
		store, err := trust.Load([]string{w.trustDir()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		stores[threshold], w.policy = store, policy
	}
	byAcme, bySecond := envelope(t, w.acme, bundle.PayloadType, g.payload), envelope(t, w.second, bundle.PayloadType, g.payload)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(m.fields)), func(name string) bool { return reflect.DeepEqual(g.fields[name], m.fields[name]) })
	accepted := 0
	for _, chosen := range selections(names) {
		payload := g.with(t, m, chosen)
		hostile := envelope(t, w.mallory, bundle.PayloadType, payload)
		for _, bundles := range [][][]byte{{hostile, byAcme}, {byAcme, hostile}, {hostile, byAcme, bySecond}, {byAcme, bySecond, hostile}} {
			for _, file := range []*forged{g, m} {
				right := 0
				if file == g {
					right = len(bundles) - 1
				}
				if file.about(t, payload) {
					right++
				}
				for threshold := 1; threshold <= len(bundles); threshold++ {
					for _, o := range []sign.Options{{Full: threshold == 1}, {OnRead: true}} {
						o.Store = stores[threshold]
						err := verifyForged(t, file, bundles, o)
						if (err == nil) != (right >= threshold) {
							t.Fatalf("the hostile signer of %d (threshold %d, on read %v) says of the malicious archive %v: %d are right, got %v\n%s",
								len(bundles), threshold, o.OnRead, chosen, right, err, payload)
						}
						if err == nil {
							accepted++
						}
					}
				}
			}
		}
	}
	if accepted == 0 {
		t.Error("nothing was accepted at all")
	}
}

// verifyForged verifies, reads everything, and compares the digest of the whole, like the store of a host.
func verifyForged(t *testing.T, f *forged, bundles [][]byte, o sign.Options) error {
	t.Helper()
	w := &world{t: t}
	w.set(bundles...)
	o.Now = now
	o.Identify = func(io.ReaderAt, int64) (sign.Identity, error) {
		return sign.Identity{Solution: f.solution, ManifestDigest: f.manifest}, nil
	}
	verdict, reader, err := sign.Verify(t.Context(), bytes.NewReader(f.data), int64(len(f.data)), w.bundles, o)
	if err != nil {
		if exit := report.CodeOf(err).ExitStatus(); exit < 4 || exit > 6 {
			t.Errorf("exit status %d: %v", exit, err)
		}
		return err
	}
	read := make([]byte, reader.Size())
	if _, err := reader.ReadAt(read, 0); err != nil {
		return err
	}
	if verdict.Tampered != nil {
		t.Errorf("an archive that is accepted is called altered: %v", verdict.Tampered)
	}
	switch {
	case verdict.Archive.SHA256 == hexSum(read) && bytes.Equal(read, f.data):
		return nil
	case !o.OnRead:
		t.Errorf("the verdict says sha256:%s, what was read has sha256:%s", verdict.Archive.SHA256, hexSum(read))
	}
	return report.Errorf(report.Mismatch, "the digest of the whole is another one")
}

// TestDigestOfAnotherArchive is the trick of a single signer: the chunks of the archive at hand with the digest of one that
// was not revoked, or that was imported before.
func TestDigestOfAnotherArchive(t *testing.T) {
	other := strings.Repeat("0", 64)
	lie := func(w *world) {
		w.resign(func(st map[string]any) { at(st["subject"].([]any)[0].(map[string]any), "digest")["sha256"] = other })
	}
	runCases(t, []verifyCase{
		{"of one that was not revoked", func(w *world) {
			w.revoked = &trust.Revocations{Archives: []string{"sha256:" + hexSum(w.data)}}
			lie(w)
		}, report.Mismatch, 5},
		{"of one that was imported before", func(w *world) {
			w.imported("1.2.0", other)
			lie(w)
		}, report.Mismatch, 5},
		{"of one with other build metadata", func(w *world) {
			w.imported("1.2.0+7", other)
			lie(w)
		}, report.Mismatch, 5},
	})
}
