package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// readEnums returns the allowed values of the fields whose Go type is marked +enum, by "definition.field". The
// published OpenAPI documents do not have them.
func readEnums(root string) (map[string][]string, error) {
	enums := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(root, "*/*/types.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		version := filepath.Base(filepath.Dir(name))
		group := filepath.Base(filepath.Dir(filepath.Dir(name)))
		addEnums(enums, file, "io.k8s.api."+group+"."+version+".")
	}
	return enums, nil
}

func addEnums(enums map[string][]string, file *ast.File, prefix string) {
	values := enumTypes(file)
	for _, spec := range typeSpecs(file) {
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range structure.Fields.List {
			if name := jsonName(field); name != "" {
				if allowed := values[elementType(field.Type)]; len(allowed) > 0 {
					enums[prefix+spec.Name.Name+"."+name] = allowed
				}
			}
		}
	}
}

// enumTypes returns the constants of each type whose comment has a line "+enum".
func enumTypes(file *ast.File) map[string][]string {
	marked := map[string]bool{}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		for _, spec := range general.Specs {
			spec := spec.(*ast.TypeSpec)
			for _, group := range []*ast.CommentGroup{general.Doc, spec.Doc} {
				if group != nil && strings.Contains(group.Text()+"\n", "+enum\n") {
					marked[spec.Name.Name] = true
				}
			}
		}
	}
	values := map[string][]string{}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			spec := spec.(*ast.ValueSpec)
			name, ok := spec.Type.(*ast.Ident)
			if !ok || !marked[name.Name] || len(spec.Values) != 1 {
				continue
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if value, err := strconv.Unquote(literal.Value); err == nil {
					values[name.Name] = append(values[name.Name], value)
				}
			}
		}
	}
	return values
}

func typeSpecs(file *ast.File) []*ast.TypeSpec {
	var specs []*ast.TypeSpec
	for _, declaration := range file.Decls {
		if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.TYPE {
			for _, spec := range general.Specs {
				specs = append(specs, spec.(*ast.TypeSpec))
			}
		}
	}
	return specs
}

func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	_, rest, found := strings.Cut(tag, `json:"`)
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, `"`)
	name, _, _ = strings.Cut(name, ",")
	return name
}

// elementType is the name of a field's type, of its pointee, or of its elements.
func elementType(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return elementType(e.X)
	case *ast.ArrayType:
		return elementType(e.Elt)
	}
	return ""
}

// lifecycle holds the minor releases of Kubernetes 1 in which an API came, was deprecated and went.
type lifecycle struct {
	Group       string    `json:"g,omitempty"`
	Version     string    `json:"v"`
	Kind        string    `json:"k"`
	Introduced  int       `json:"i,omitempty"`
	Deprecated  int       `json:"d,omitempty"`
	Removed     int       `json:"x,omitempty"`
	Replacement [3]string `json:"r,omitzero"`
}

// readLifecycles reads every zz_generated.prerelease-lifecycle.go below root; a later release corrects an earlier one.
func (s *set) readLifecycles(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "zz_generated.prerelease-lifecycle.go" {
			return err
		}
		group, err := groupName(filepath.Dir(path))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv != nil {
				s.addLifecycle(group, file.Name.Name, function)
			}
		}
		return nil
	})
}

func (s *set) addLifecycle(group, version string, function *ast.FuncDecl) {
	kind := elementType(function.Recv.List[0].Type)
	if strings.HasSuffix(kind, "List") {
		return
	}
	key := group + "/" + version + "/" + kind
	life, ok := s.lifecycle[key]
	if !ok {
		life = lifecycle{Group: group, Version: version, Kind: kind}
	}
	result := function.Body.List[0].(*ast.ReturnStmt).Results
	switch function.Name.Name {
	case "APILifecycleIntroduced":
		life.Introduced = minor(result)
	case "APILifecycleDeprecated":
		life.Deprecated = minor(result)
	case "APILifecycleRemoved":
		life.Removed = minor(result)
	case "APILifecycleReplacement":
		life.Replacement = [3]string{}
		for _, element := range result[0].(*ast.CompositeLit).Elts {
			pair := element.(*ast.KeyValueExpr)
			value, _ := strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
			switch pair.Key.(*ast.Ident).Name {
			case "Group":
				life.Replacement[0] = value
			case "Version":
				life.Replacement[1] = value
			case "Kind":
				life.Replacement[2] = value
			}
		}
	}
	s.lifecycle[key] = life
}

func minor(results []ast.Expr) int {
	n, _ := strconv.Atoi(results[1].(*ast.BasicLit).Value)
	return n
}

// groupName reads the constant GroupName of the API package in dir, or of the package above it.
func groupName(dir string) (string, error) {
	for _, name := range []string{filepath.Join(dir, "register.go"), filepath.Join(filepath.Dir(dir), "register.go")} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return "", err
		}
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				spec := spec.(*ast.ValueSpec)
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok && spec.Names[0].Name == "GroupName" {
					return strconv.Unquote(literal.Value)
				}
			}
		}
	}
	return "", nil
}
