package lazyregexp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

func TestFirstUseCompiles(t *testing.T) {
	expression := lazyregexp.New(`^(\w+)-(\d+)$`)
	if got := expression.FindStringSubmatch("crate-12"); len(got) != 3 || got[1] != "crate" || got[2] != "12" {
		t.Errorf("got groups %q", got)
	}
	if expression.MatchString("crate") {
		t.Error("crate matches")
	}
	if got := expression.ReplaceAllString("crate-12", "$2"); got != "12" {
		t.Errorf("got %q after replacing", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression did not panic when it was used")
		}
	}()
	lazyregexp.New(`(`).MatchString("x")
}

// TestExpressionsOfTheModule compiles what a package variable of the module passes to New, and refuses package variables that the start
// of the program compiles.
func TestExpressionsOfTheModule(t *testing.T) {
	root := filepath.Join("..", "..")
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if _, err = os.Stat(filepath.Join(path, "go.mod")); path != root && (err == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			variables, ok := declaration.(*ast.GenDecl)
			if !ok || variables.Tok != token.VAR {
				continue
			}
			ast.Inspect(variables, func(node ast.Node) bool {
				if _, ok := node.(*ast.FuncLit); ok {
					return false
				}
				call, ok := node.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch name := calledFunction(call); name {
				case "regexp.MustCompile":
					t.Errorf("%s: compiled at each start of the program: use lazyregexp.New", files.Position(call.Pos()))
				case "lazyregexp.New":
					found++
					if text, ok := literal(call.Args[0]); ok {
						if _, err := regexp.Compile(text); err != nil {
							t.Errorf("%s: %v", files.Position(call.Pos()), err)
						}
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 50 {
		t.Errorf("found %d expressions, want at least 50: is this the root of the module?", found)
	}
}

// calledFunction returns the package and the name of a function that is called by both, "" for another one.
func calledFunction(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if name, ok := selector.X.(*ast.Ident); ok {
		return name.Name + "." + selector.Sel.Name
	}
	return ""
}

// literal returns the text of a string literal; an expression that is put together is left to the tests of its package.
func literal(value ast.Expr) (string, bool) {
	text, ok := value.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	unquoted, err := strconv.Unquote(text.Value)
	return unquoted, err == nil
}
