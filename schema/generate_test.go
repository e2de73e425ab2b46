package schema_test

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// document is one that the program writes itself, on standard output or to be read again. Its JSON Schema is generated
// from its type: comments are the descriptions, constants of a type its values, and a field without omitempty is required.
// What a type cannot say stands in the tag schema of a field: names of [formats], and keywords with their values. On a list
// or a map they hold for what is in it, on an embedded struct for its required fields.
type document struct {
	typ   reflect.Type
	title string
}

var documents = map[string]document{
	"output/alerts":         {reflect.TypeFor[schema.AlertList](), "Alerts: what Prometheus tells of Solutions"},
	"output/archivefacts":   {reflect.TypeFor[schema.ArchiveFacts](), "ArchiveFacts: how an archive was made, what its vendor states, and its packages"},
	"output/app":            {reflect.TypeFor[schema.App](), "App: one instance of an application"},
	"output/appform":        {reflect.TypeFor[schema.AppForm](), "Form: what can be filled in for an application"},
	"output/apps":           {reflect.TypeFor[schema.AppList](), "Apps: the instances of applications in an environment"},
	"output/compatibility":  {reflect.TypeFor[schema.Compatibility](), "Compatibility: which versions of a Solution can be active beside what is deployed"},
	"output/components":     {reflect.TypeFor[schema.ComponentGraph](), "Components: what a version of a Solution is made of, and what waits for what"},
	"output/convergence":    {reflect.TypeFor[schema.Convergence](), "Convergence: what makes a cluster have what a SolutionsConfiguration says"},
	"output/deployment":     {reflect.TypeFor[schema.DeploymentStatus](), "Deployment: how a deployed Solution is"},
	"output/diagnosis":      {reflect.TypeFor[schema.Diagnosis](), "Diagnosis: what stands against working with a host and a cluster"},
	"output/endpoints":      {reflect.TypeFor[schema.EndpointList](), "EndpointList: where the nodes of a cluster find images"},
	"output/environment":    {reflect.TypeFor[schema.EnvironmentStatus](), "Environment: an environment and what is deployed in it"},
	"output/environments":   {reflect.TypeFor[schema.EnvironmentList](), "Environments: all environments of a cluster"},
	"output/clustername":    {reflect.TypeFor[schema.ClusterName](), "ClusterName: how people call a cluster"},
	"output/events":         {reflect.TypeFor[schema.EventList](), "Events: what Kubernetes has reported about the objects of Solutions"},
	"output/finding":        {reflect.TypeFor[report.Finding](), "Finding: one judgement"},
	"output/history":        {reflect.TypeFor[schema.History](), "History: what was done to a cluster"},
	"output/uninstallation": {reflect.TypeFor[schema.Uninstallation](), "Uninstallation: what uninstalling Solutions does"},
	"output/installation":   {reflect.TypeFor[schema.Installation](), "Installation: what installing Solutions from archives does"},
	"output/import":         {reflect.TypeFor[schema.ImportReport](), "ImportReport: archives that were imported"},
	"output/lint":           {reflect.TypeFor[schema.LintReport](), "Lint: what is said about projects and archives"},
	"output/logline":        {reflect.TypeFor[schema.LogLine](), "LogLine: a line that a container has written"},
	"output/loaderplan":     {reflect.TypeFor[schema.LoaderPlan](), "LoaderPlan: what starting the loader would do"},
	"output/loadprogress":   {reflect.TypeFor[schema.LoadProgress](), "LoadProgress: how far the loader is"},
	"output/monitoring":     {reflect.TypeFor[schema.MonitoringReport](), "Monitoring: what the Prometheus and the Grafana of a cluster look for"},
	"output/sync":           {reflect.TypeFor[schema.SyncReport](), "SyncReport: archives that were copied from another host"},
	"output/preload":        {reflect.TypeFor[schema.Preload](), "Preload: images that nodes keep"},
	"output/push":           {reflect.TypeFor[schema.PushReport](), "PushReport: images that were pushed to a registry"},
	"output/node":           {reflect.TypeFor[schema.NodeConfig](), "NodeConfig: the files by which a node pulls from the registry"},
	"output/notification":   {reflect.TypeFor[schema.Notification](), "Notification: problems that began or ended"},
	"output/objecttree":     {reflect.TypeFor[schema.ObjectTree](), "ObjectTree: the objects of a Solution in an environment, down to containers"},
	"output/operation":      {reflect.TypeFor[schema.Operation](), "Operation: what a command that deploys did, or would do"},
	"output/registryaccess": {reflect.TypeFor[schema.RegistryAccess](), "RegistryAccess: one request"},
	"output/resumption":     {reflect.TypeFor[schema.Resumption](), "Resumption: operations that had not ended"},
	"output/affected":       {reflect.TypeFor[schema.AffectedReport](), "Affected: packages in archives that a question matches"},
	"output/siteaffected":   {reflect.TypeFor[schema.SiteAffectedReport](), "SiteAffected: packages of a site that a question matches"},
	"output/packagechanges": {reflect.TypeFor[schema.PackageDifference](), "PackageChanges: packages that changed between two archives"},
	"output/packages":       {reflect.TypeFor[schema.PackageList](), "Packages: the packages in the images of an archive"},
	"output/powers":         {reflect.TypeFor[schema.Powers](), "Powers: what an archive can do to a cluster beyond what a Solution may do unasked"},
	"output/search":         {reflect.TypeFor[schema.SearchResult](), "Search: versions of Solutions"},
	"output/status":         {reflect.TypeFor[schema.Status](), "Status: what was imported, what is deployed where, and how it is"},
	"output/supportbundle":  {reflect.TypeFor[schema.SupportBundle](), "SupportBundle: states, versions and events of a cluster"},
	"output/supportreport":  {reflect.TypeFor[schema.SupportReport](), "SupportReport: where a support bundle was written"},
	"output/unimport":       {reflect.TypeFor[schema.UnimportReport](), "UnimportReport: an archive that was taken away"},
	"output/userinterface":  {reflect.TypeFor[schema.UserInterface](), "UserInterface: where the user interface of a Solution is"},
	"output/values":         {reflect.TypeFor[schema.SolutionValues](), "Values: what a site can set of the charts of a version"},
	"output/verdict":        {reflect.TypeFor[sign.Verdict](), "Verdict"},
	"stored/applications":   {reflect.TypeFor[schema.Applications](), "Applications: what the version of a Solution in a namespace offers to whoever runs applications there"},
	"stored/archive":        {reflect.TypeFor[schema.StoredArchive](), "StoredArchive: an archive in the store of a host"},
	"stored/artifact":       {reflect.TypeFor[schema.ArchiveArtifact](), "ArchiveArtifact: an archive in a registry, as its frame and its blobs"},
	"stored/clustername":    {reflect.TypeFor[schema.StoredClusterName](), "ClusterName: how people call a cluster"},
	"stored/delta":          {reflect.TypeFor[schema.ArchiveDelta](), "ArchiveDelta: an archive made of older ones and of new bytes"},
	"stored/deployment":     {reflect.TypeFor[schema.DeploymentState](), "DeploymentState: what is deployed of one Solution in one namespace"},
	"stored/host":           {reflect.TypeFor[schema.HostSettings](), "HostSettings: what the first import on a host decided"},
	"stored/imports":        {reflect.TypeFor[schema.Imports](), "Imports: the versions of Solutions that a cluster knows"},
	"stored/load":           {reflect.TypeFor[schema.LoadParameters](), "Load: what a run of the loader is to do"},
	"stored/loadprogress":   {reflect.TypeFor[schema.LoadProgress](), "LoadProgress: how far the loader is"},
	"stored/monitoring":     {reflect.TypeFor[schema.ClusterMonitoring](), "Monitoring: what the Prometheus and the Grafana of a cluster look for"},
	"stored/notifications":  {reflect.TypeFor[schema.Notifications](), "Notifications: the problems that a webhook was sent"},
	"stored/payload":        {reflect.TypeFor[schema.PayloadHead](), "PayloadHead: the images of an archive whose other files are kept"},
	"stored/preload":        {reflect.TypeFor[schema.PreloadedImages](), "Preload: the images that the nodes of a cluster keep"},
	"stored/registry":       {reflect.TypeFor[schema.ClusterRegistry](), "Registry: where the nodes of a cluster find the images of Solutions"},
}

// formats are the texts that have a form.
var formats = map[string]object{
	"name":        {{"minLength", 1}, {"maxLength", 63}, {"pattern", "^[0-9a-z]([0-9a-z-]*[0-9a-z])?$"}},
	"version":     {{"minLength", 1}, {"maxLength", 63}, {"pattern", "^[0-9a-z][0-9a-z.-]*$"}},
	"image":       {{"pattern", `^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`}},
	"sha256":      {{"pattern", "^[0-9a-f]{64}$"}},
	"digest":      {{"pattern", "^sha256:[0-9a-f]{64}$"}},
	"digest?":     {{"pattern", "^(sha256:[0-9a-f]{64})?$"}},
	"fingerprint": {{"pattern", "^SHA256:[0-9a-f]{64}$"}},
	"host":        {{"minLength", 1}, {"maxLength", 253}, {"pattern", "^[0-9a-z.-]+(:[0-9]{1,5})?$"}},
	"url":         {{"pattern", "^https?://"}},
	"pathprefix":  {{"pattern", "^(/[0-9A-Za-z_-][0-9A-Za-z._-]*)*$"}},
}

// TestGeneratedSchemas compares the schemas in the tree with what their types say; -update writes them.
func TestGeneratedSchemas(t *testing.T) {
	source := readSource(t, ".", "report", "../sign", "../sign/bundle")
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		t.Run(name, func(t *testing.T) {
			got, file := source.generate(t, name), name+".schema.json"
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what type %s says (%v): run make docs", file, documents[name].typ, err)
			}
		})
	}
	var there []string
	for _, directory := range []string{"output", "stored"} {
		files, err := filepath.Glob(directory + "/*.json")
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, files...)
	}
	for _, file := range there {
		if _, ok := documents[strings.TrimSuffix(filepath.ToSlash(file), ".schema.json")]; !ok {
			t.Errorf("%s has no type in this test", file)
		}
	}
}

// source holds the parts of types that reflection cannot read: package.Type and package.Type.Field to comment, package.Type
// to constants.
type source struct {
	comments map[string]string
	values   map[string][]any
}

func readSource(t *testing.T, directories ...string) *source {
	t.Helper()
	s := &source{map[string]string{}, map[string][]any{}}
	for _, directory := range directories {
		files, err := filepath.Glob(directory + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range file.Decls {
				if general, ok := declaration.(*ast.GenDecl); ok {
					s.read(file.Name.Name+".", general)
				}
			}
		}
	}
	return s
}

func (s *source) read(pkg string, declaration *ast.GenDecl) {
	for _, spec := range declaration.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			name := pkg + spec.Name.Name
			s.comments[name] = comment(declaration.Doc)
			if structure, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range structure.Fields.List {
					for i, fieldName := range field.Names {
						if i == 0 { // of several, the first one has the comment
							s.comments[name+"."+fieldName.Name] = cmp.Or(comment(field.Doc), comment(field.Comment))
						}
					}
				}
			}
		case *ast.ValueSpec:
			typ, ok := spec.Type.(*ast.Ident)
			for _, value := range spec.Values {
				if literal, isLiteral := value.(*ast.BasicLit); ok && isLiteral && literal.Kind == token.STRING {
					text, _ := strconv.Unquote(literal.Value)
					s.values[pkg+typ.Name] = append(s.values[pkg+typ.Name], text)
				}
			}
		}
	}
}

// comment is one paragraph of text without the marks of links.
func comment(group *ast.CommentGroup) string {
	return strings.NewReplacer("[", "", "]", "").Replace(strings.Join(strings.Fields(group.Text()), " "))
}

// generator makes the schema of one document.
type generator struct {
	*source
	counting bool
	uses     map[reflect.Type]int // structs that occur several times become definitions
	defs     object
}

func (s *source) generate(t *testing.T, name string) []byte {
	t.Helper()
	g, d := &generator{source: s, counting: true, uses: map[reflect.Type]int{}}, documents[name]
	g.structure(d.typ)
	g.counting, g.defs = false, nil
	root := append(object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "https://solutionctl.io/schema/v1alpha1/" + name + ".schema.json"},
		{"title", d.title},
		{"description", s.comments[typeName(d.typ)]},
	}, g.structure(d.typ)...)
	if len(g.defs) > 0 {
		slices.SortFunc(g.defs, func(a, b member) int { return strings.Compare(a.name, b.name) })
		root = append(root, member{"$defs", g.defs})
	}
	var b bytes.Buffer
	write(&b, root, 0, 0)
	b.WriteByte('\n')
	return b.Bytes()
}

func typeName(t reflect.Type) string { return path.Base(t.PkgPath()) + "." + t.Name() }

// structure is the schema of a struct. The fields of embedded structs are its own.
func (g *generator) structure(t reflect.Type) object {
	required, properties := []any{}, object{}
	var add func(t reflect.Type, inherited string)
	add = func(t reflect.Type, inherited string) {
		for field := range t.Fields() {
			tag := field.Tag.Get("schema")
			if field.Anonymous {
				add(field.Type, tag)
				continue
			}
			name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if option == "" {
				required = append(required, name)
				tag += " " + inherited
			}
			description := g.comments[typeName(t)+"."+field.Name]
			if rest, ok := strings.CutPrefix(description, field.Name+" "); ok {
				description = name + " " + rest
			}
			properties = append(properties, member{name, g.value(field.Type, tag, description)})
		}
	}
	add(t, "")
	s := object{{"type", "object"}, {"additionalProperties", false}}
	if len(required) > 0 {
		s = append(s, member{"required", required})
	}
	return append(s, member{"properties", properties})
}

// value is the schema of a field, or of an element of one.
func (g *generator) value(t reflect.Type, tag, description string) object {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var s object
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[schema.ComponentWish]():
		s = object{{"enum", []any{true, false, string(schema.ComponentDefault)}}}
	case t == reflect.TypeFor[time.Time]():
		s = object{{"type", "string"}, {"format", "date-time"}}
	case t == reflect.TypeFor[[]byte]():
		s = append(object{{"type", "string"}, {"contentEncoding", "base64"}}, keywords(tag)...)
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()), t == reflect.TypeFor[report.Code](): // codes become more
		s = append(object{{"type", "string"}}, keywords(tag)...)
	case kind == reflect.String:
		s = append(object{{"type", "string"}}, keywords(tag)...)
		if values := g.values[typeName(t)]; values != nil {
			s = append(s, member{"enum", values})
		}
	case kind == reflect.Bool:
		s = object{{"type", "boolean"}}
	case kind == reflect.Float64:
		s = object{{"type", "number"}}
	case kind == reflect.Int, kind == reflect.Int64:
		s = append(object{{"type", "integer"}}, keywords(tag)...)
	case kind == reflect.Slice:
		whole, each := cutKeyword(tag, "maxItems")
		s = append(append(object{{"type", "array"}}, keywords(whole)...), member{"items", g.value(t.Elem(), each, "")})
	case kind == reflect.Map:
		s = object{{"type", "object"}, {"additionalProperties", g.value(t.Elem(), tag, "")}}
	case kind == reflect.Struct:
		return g.reference(t, description)
	case kind != reflect.Interface: // which is anything
		panic(fmt.Sprintf("a %s is part of no document", t))
	}
	return described(description, s)
}

func described(description string, s object) object {
	if description == "" {
		return s
	}
	return append(object{{"description", description}}, s...)
}

// reference is the schema of a struct, or where it is.
func (g *generator) reference(t reflect.Type, description string) object {
	for name, d := range documents {
		if d.typ == t {
			return described(description, object{{"$ref", path.Base(name) + ".schema.json"}})
		}
	}
	if g.counting {
		g.uses[t]++
	}
	comment := g.comments[typeName(t)]
	if g.uses[t] == 1 {
		return described(cmp.Or(description, comment), g.structure(t))
	}
	if !slices.ContainsFunc(g.defs, func(m member) bool { return m.name == t.Name() }) && !g.counting {
		g.defs = append(g.defs, member{t.Name(), nil}) // first, as it may be part of itself
		at := len(g.defs) - 1
		g.defs[at].value = described(comment, g.structure(t))
	}
	return described(description, object{{"$ref", "#/$defs/" + t.Name()}})
}

// keywords reads a tag.
func keywords(tag string) object {
	var s object
	for word := range strings.FieldsSeq(tag) {
		keyword, text, ok := strings.Cut(word, "=")
		var value any = text
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			value = number
		} else if keyword == "enum" {
			value = list(strings.Split(text, "|"))
		}
		switch format, isFormat := formats[word]; {
		case isFormat:
			s = append(s, format...)
		case ok:
			s = append(s, member{keyword, value})
		default:
			panic("no format is called " + word)
		}
	}
	return s
}

func list(texts []string) []any {
	var values []any
	for _, text := range texts {
		values = append(values, text)
	}
	return values
}

// cutKeyword takes a keyword and its value out of a tag.
func cutKeyword(tag, keyword string) (cut, rest string) {
	var kept []string
	for word := range strings.FieldsSeq(tag) {
		if strings.HasPrefix(word, keyword+"=") {
			cut = word
		} else {
			kept = append(kept, word)
		}
	}
	return cut, strings.Join(kept, " ")
}

// object is a JSON object whose members have an order.
type (
	object []member
	member struct {
		name  string
		value any
	}
)

// write puts a value on one line where that is short, for people who read it.
func write(b *bytes.Buffer, value any, indent, before int) {
	const wide = 130
	line := oneLine(value)
	o, ok := value.(object)
	if !ok || indent > 0 && indent+before+len(line) <= wide {
		b.WriteString(line)
		return
	}
	space := strings.Repeat(" ", indent)
	b.WriteString("{")
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key := fmt.Sprintf("%q: ", m.name)
		fmt.Fprintf(b, "\n%s  %s", space, key)
		write(b, m.value, indent+2, len(key))
	}
	fmt.Fprintf(b, "\n%s}", space)
}

func oneLine(value any) string {
	var parts []string
	switch value := value.(type) {
	case object:
		for _, m := range value {
			parts = append(parts, fmt.Sprintf("%q: %s", m.name, oneLine(m.value)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, element := range value {
			parts = append(parts, oneLine(element))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
