package deployertest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// Content is the content of an archive. The zero value is the minimum of a Solution with an operator: a role that reads pods, and a
// CustomResourceDefinition of Clocks with the integer spec.hands.
type Content struct {
	Role     string // rules of the operator's role, in YAML
	RoleKind string // of the object in role.yaml, Role by default
	Scope    string // of Clocks, Namespaced by default
	Fields   string // more fields of a Clock's spec, in YAML: "colour: {type: string}"
	Versions string // of the definition, "v1" by default; one with a minus is not served, the last one is stored
	// Conversion is that of the definition, in YAML: "{strategy: Webhook, …}".
	Conversion string
	Scale      bool              // Clocks have replicas, and a scale
	Manifest   string            // more lines of the manifest's spec: "dependsOn: [{name: base, version: '>=1.0.0'}]"
	Files      map[string]string // more files of the archive, by path
	Images     []string          // more images, by name
	Bare       bool              // there is nothing but Files and Images: no operator, and no Clocks
}

// Group is the API group of the Clocks of a Solution.
func Group(solution string) string { return solution + ".example" }

// Definition is the name of the definition of the Clocks of a Solution.
func Definition(solution string) string { return "clocks." + Group(solution) }

// Payload is a version of a Solution as it is read from its archive.
func Payload(tb testing.TB, solution, version string, c Content) *render.Payload {
	tb.Helper()
	p, err := c.Payload(solution, version)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Payload is a version of a Solution as it is read from its archive.
func (c Content) Payload(solution, version string) (*render.Payload, error) {
	a, err := archive.FromFS(c.FS(solution, version))
	if err != nil {
		return nil, err
	}
	return render.FromArchive(a)
}

// FS is an archive of a version as a file system.
func (c Content) FS(solution, version string) fstest.MapFS {
	role := cmp.Or(c.Role, "- {apiGroups: [''], resources: [pods], verbs: [get, list]}")
	files := fstest.MapFS{
		"manifest.yaml": text("apiVersion: %s\nkind: Solution\nmetadata: {name: %s}\nspec:\n  version: %s\n  %s\n", schema.APIVersion, solution, version, c.Manifest),
		"operator/deploy/role.yaml": text("apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: %s-operator}\nrules:\n%s\n",
			cmp.Or(c.RoleKind, "Role"), solution, role),
		"operator/deploy/crds/clocks_crd.yaml": text("%s", c.CRD(solution)),
	}
	if c.Bare {
		maps.DeleteFunc(files, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "operator/") })
	} else {
		addImage(files, solution+"-operator", version)
	}
	for name, content := range c.Files {
		files[name] = text("%s", content)
	}
	for _, name := range c.Images {
		addImage(files, name, version)
	}
	return files
}

// CRD is the definition of Clocks that an archive of a Solution has.
func (c Content) CRD(solution string) string {
	fields, scale := "hands: {type: integer}", ""
	if c.Fields != "" {
		fields += ", " + c.Fields
	}
	if c.Scale {
		fields += ", replicas: {type: integer}"
		scale = ", scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}"
	}
	conversion := ""
	if c.Conversion != "" {
		conversion = "  conversion: " + c.Conversion + "\n"
	}
	var versions strings.Builder
	names := strings.Fields(cmp.Or(c.Versions, "v1"))
	for i, given := range names {
		name, unserved := strings.CutSuffix(given, "-")
		fmt.Fprintf(&versions, "  - {name: %s, served: %t, storage: %t, subresources: {status: {}%s},\n"+
			"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}\n",
			name, !unserved, i == len(names)-1, scale, fields)
	}
	return fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s}\nspec:\n  group: %s\n  scope: %s\n"+
		"  names: {kind: Clock, plural: clocks, singular: clock, listKind: ClockList}\n%s  versions:\n%s",
		Definition(solution), Group(solution), cmp.Or(c.Scope, "Namespaced"), conversion, versions.String())
}

// addImage puts an image into an archive as MetalK8s' tooling writes it. Its only layer has a file with the tag. Images of
// the same tag are the same, whatever their name: tests compare Solutions that only have other names.
func addImage(files fstest.MapFS, name, tag string) {
	var unpacked, layer bytes.Buffer
	archive, compressed := tar.NewWriter(&unpacked), gzip.NewWriter(&layer)
	_ = archive.WriteHeader(&tar.Header{Name: "version", Mode: 0o644, Size: int64(len(tag))}) // a buffer takes everything
	_, _ = archive.Write([]byte(tag))
	_ = archive.Close()
	_, _ = compressed.Write(unpacked.Bytes())
	_ = compressed.Close()
	config := fmt.Sprintf(`{"os":"linux","architecture":"amd64","config":{"Entrypoint":["/program"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}`, digest(unpacked.String()))
	dir := "images/" + name + "/" + tag + "/"
	files[dir+"version"] = text("Directory Transport Version: 1.1\n")
	files[dir+digest(config)], files[dir+digest(layer.String())] = text("%s", config), &fstest.MapFile{Data: layer.Bytes()}
	files[dir+"manifest.json"] = text(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",
"config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:%s","size":%d},
"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","digest":"sha256:%s","size":%d}]}`,
		digest(config), len(config), digest(layer.String()), layer.Len())
}

func text(format string, args ...any) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
