package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unsafe"
)

// text/template has no limits: recursion may exceed the stack, which ends the program, a loop may never end, and a
// table that contains itself is printed without end. So checks are inserted: at the start of each template, in each
// round of a loop, and around printed values and results of methods. Between two checks the stack grows by a few
// templates, which is bounded by the number of blocks in a text and by the parentheses that text/template accepts.
const (
	maxActions = 10_000  // in one text, and so blocks in blocks
	maxTokens  = 600_000 // in the actions of all texts that are in use
	maxFrames  = 40_000  // on the stack
	looks      = 24      // one look at the stack in so many templates, since counting frames takes time
	frameWork  = 60      // work of counting a frame
)

// checks are the functions that are planted into templates. They print nothing; a chart that calls them gains nothing by it.
func (r *renderer) checks() template.FuncMap {
	return template.FuncMap{
		"checkStack": r.checkStack, "checkTime": r.checkTime, "checkPrinted": r.checkPrinted, "checkResult": r.checkResult,
		"checkRange": r.checkRange, "checkGlob": r.checkGlob,
	}
}

func (r *renderer) checkTime() (string, error) {
	err := r.budget.spend(2 * callCost)
	if err == nil {
		err = r.budget.inTime()
	}
	return "", err
}

func (r *renderer) checkStack() (string, error) {
	if r.calls++; r.calls%looks != 0 {
		return r.checkTime()
	}
	for _, frames := range [...]int{1000, 6000, maxFrames} {
		if err := r.budget.spend(int64(frames) * frameWork); err != nil {
			return "", err
		}
		if runtime.Callers(frames, make([]uintptr, 1)) == 0 {
			return r.checkTime()
		}
	}
	return "", excess("templates are nested too deeply")
}

// checkPrinted looks at a value that text/template prints next.
func (r *renderer) checkPrinted(v reflect.Value) (reflect.Value, error) {
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Interface, reflect.Pointer:
		s := size{limit: maxText}
		s.reflected(v, 0)
		if err := r.budget.judge("print", &s); err != nil {
			return v, err
		}
		return v, r.budget.result("print", s.printed())
	}
	return v, nil
}

// checkRange checks the range of a loop. The keys of a table are sorted first.
func (r *renderer) checkRange(v reflect.Value) (reflect.Value, error) {
	if v.Kind() == reflect.Map {
		return v, r.budget.spend(int64(v.Len()) * sortWork)
	}
	return v, nil
}

// checkGlob gives the pattern of a call of .Files.Glob the budget.
func (r *renderer) checkGlob(pattern any) any {
	if text, ok := pattern.(string); ok {
		return globPattern{text, r.budget}
	}
	return pattern
}

// checkResult counts the result of a method.
func (r *renderer) checkResult(v reflect.Value) (reflect.Value, error) {
	switch v.Kind() {
	case reflect.String:
		return v, r.budget.keepText(v.String())
	case reflect.Slice:
		if lines, ok := reflect.TypeAssert[[]string](v); ok && len(lines) > 0 { // parts of one text
			bytes := int64(0)
			for _, line := range lines {
				bytes += int64(len(line))
			}
			if err := r.budget.watch(unsafe.StringData(lines[0]), bytes); err != nil {
				return v, err
			}
		}
		return v, r.budget.watch((*byte)(v.UnsafePointer()), int64(v.Cap())*int64(v.Type().Elem().Size()))
	case reflect.Map:
		return v, r.budget.keepSmall(int64(v.Len()) * entrySize)
	}
	return v, nil
}

var stackCheck = action("checkStack", 0)

func command(function string, at parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{parse.NewIdentifier(function).SetPos(at)}}
}

func pipe(at parse.Pos, commands ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: commands}
}

// through is (argument | function).
func through(function string, argument parse.Node) parse.Node {
	at := argument.Position()
	return pipe(at, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{argument}}, command(function, at))
}

// action is {{ function }}, which errors say to be at a place in the text.
func action(function string, at parse.Pos) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: at, Pipe: pipe(at, command(function, at))}
}

// plant plants checks into the templates that have none yet.
func (r *renderer) plant(t *template.Template) {
	for _, t := range t.Templates() {
		if root := t.Root; len(root.Nodes) == 0 || root.Nodes[0] != stackCheck {
			r.plantList(root)
			begin(root, stackCheck)
		}
	}
}

func (r *renderer) plantList(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.RangeNode:
			r.plantBranch(&node.BranchNode)
			node.Pipe.Cmds = append(node.Pipe.Cmds, command("checkRange", node.Pos))
			begin(node.List, action("checkTime", node.Pos))
		case *parse.IfNode:
			r.plantBranch(&node.BranchNode)
		case *parse.WithNode:
			r.plantBranch(&node.BranchNode)
		case *parse.TemplateNode:
			plantPipe(node.Pipe)
		case *parse.ActionNode:
			plantPipe(node.Pipe)
			if len(node.Pipe.Decl) == 0 && !r.makesText(node.Pipe) {
				node.Pipe.Cmds = append(node.Pipe.Cmds, command("checkPrinted", node.Pos))
			}
		}
	}
}

func (r *renderer) plantBranch(node *parse.BranchNode) {
	plantPipe(node.Pipe)
	r.plantList(node.List)
	r.plantList(node.ElseList)
}

// makesText reports that a pipeline ends with a constant or with a function whose result is a text.
func (r *renderer) makesText(pipe *parse.PipeNode) bool {
	switch last := pipe.Cmds[len(pipe.Cmds)-1].Args[0].(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
		return true
	case *parse.IdentifierNode:
		return r.textual[last.Ident]
	}
	return false
}

// plantPipe has the results of methods, and the work of Glob, counted.
func plantPipe(node *parse.PipeNode) {
	if node == nil {
		return
	}
	commands := make([]*parse.CommandNode, 0, len(node.Cmds))
	for n, c := range node.Cmds {
		globs := isGlob(c.Args[0])
		if globs && n > 0 { // the result of the command before is its pattern
			commands = append(commands, command("checkGlob", c.Pos))
		}
		commands = append(commands, c)
		for i, argument := range c.Args {
			switch {
			case !plantArgument(argument):
			case i == 0:
				commands = append(commands, command("checkResult", argument.Position()))
			default:
				c.Args[i] = through("checkResult", argument)
			}
			if globs && i > 0 {
				c.Args[i] = through("checkGlob", c.Args[i])
			}
		}
	}
	node.Cmds = commands
}

// isGlob reports whether a word of a command calls the method Glob, which only .Files has.
func isGlob(word parse.Node) bool {
	var names []string
	switch node := word.(type) {
	case *parse.ChainNode:
		names = node.Field
	case *parse.FieldNode:
		names = node.Ident
	case *parse.VariableNode:
		names = node.Ident[1:]
	}
	return len(names) > 0 && names[len(names)-1] == "Glob"
}

// plantArgument reports whether an argument may be a call of a method.
func plantArgument(argument parse.Node) bool {
	switch node := argument.(type) {
	case *parse.PipeNode:
		plantPipe(node)
	case *parse.ChainNode:
		plantArgument(node.Node)
		return slices.ContainsFunc(node.Field, isMethod)
	case *parse.FieldNode:
		return slices.ContainsFunc(node.Ident, isMethod)
	case *parse.VariableNode:
		return slices.ContainsFunc(node.Ident[1:], isMethod)
	}
	return false
}

// isMethod reports whether a name could be a method. Methods that return existing values need no check.
func isMethod(name string) bool {
	return name[0] >= 'A' && name[0] <= 'Z' && !strings.Contains(fields, " "+name+" ")
}

const fields = " Values Release Chart Capabilities Template Files Subcharts Name Namespace Revision IsUpgrade IsInstall Service BasePath " +
	"Version AppVersion APIVersions KubeVersion HelmVersion Major Minor GitVersion Type Annotations Has AsMap Cert Key "

func begin(list *parse.ListNode, check parse.Node) {
	list.Nodes = append([]parse.Node{check}, list.Nodes...)
}

// parseText parses a text that is not too large for the stack, and returns how many tokens it has.
func (r *renderer) parseText(t *template.Template, text string) (count int, err error) {
	if actions := strings.Count(text, "{{"); actions > maxActions {
		return 0, excess(fmt.Sprintf("%s: %d actions are too many for a template", t.Name(), actions))
	}
	count = tokens(text)
	if r.tokens += count; r.tokens > maxTokens {
		return count, excess(fmt.Sprintf("%s: templates have more than %d words in their actions", t.Name(), maxTokens))
	}
	if err = r.budget.spend(int64(count)*200 + int64(len(text))); err != nil {
		return count, err
	}
	_, err = t.Parse(text)
	return count, err
}

// tokens is about how many nodes the parser makes of the actions in a text.
func tokens(text string) (count int) {
	for {
		_, after, ok := strings.Cut(text, "{{")
		if !ok {
			return count
		}
		count += 4 // of the action, and the text before it
		if comment := strings.TrimLeft(after, "- \t\r\n"); strings.HasPrefix(comment, "/*") {
			_, text, _ = strings.Cut(comment, "*/")
			continue
		}
		inside, rest, _ := strings.Cut(after, "}}")
		word := false
		for i := range len(inside) {
			c := inside[i]
			letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= 0x80
			if !letter && c > ' ' || letter && !word {
				count++
			}
			word = letter
		}
		text = rest
	}
}
