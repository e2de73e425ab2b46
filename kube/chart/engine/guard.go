package engine

import (
	"fmt"
	"runtime"
	"strings"
	"text/template"
	"text/template/parse"
)

// text/template runs whatever it is given: recursion may exceed the stack, which ends the program, and a loop may go on for ever.
// So each template calls a check when it begins, and each loop in each of its rounds. Between two looks at the stack it grows by what
// a few templates take, which is bounded by the blocks in a text and by the parentheses that text/template takes.
const (
	maxActions = 10_000 // in one text, and so blocks in blocks
	maxFrames  = 40_000 // on the stack
	looks      = 24     // one look at the stack in so many templates, since counting frames takes time
)

// checks are the functions that are planted into templates. They print nothing; a chart that calls them gains nothing by it.
func (r *renderer) checks() template.FuncMap {
	return template.FuncMap{"checkStack": r.checkStack, "checkTime": r.checkTime}
}

func (r *renderer) checkTime() (string, error) {
	if err := r.ctx.Err(); err != nil {
		return "", refusal("it did not end in time: " + err.Error())
	}
	return "", nil
}

func (r *renderer) checkStack() (string, error) {
	if r.calls++; r.calls%looks == 0 && runtime.Callers(maxFrames, make([]uintptr, 1)) > 0 {
		return "", refusal("templates are nested too deeply")
	}
	return r.checkTime()
}

var stackCheck = call("checkStack", 0)

// call is the action {{ function }}, which errors say to be at a place in the text.
func call(function string, at parse.Pos) parse.Node {
	command := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{parse.NewIdentifier(function).SetPos(at)}}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: at, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{command}}}
}

// plant plants checks into the templates that have none yet.
func plant(t *template.Template) {
	for _, t := range t.Templates() {
		if root := t.Root; len(root.Nodes) == 0 || root.Nodes[0] != stackCheck {
			plantLoops(root)
			begin(root, stackCheck)
		}
	}
}

func plantLoops(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.RangeNode:
			plantLoops(node.List)
			plantLoops(node.ElseList)
			begin(node.List, call("checkTime", node.Pos))
		case *parse.IfNode:
			plantLoops(node.List)
			plantLoops(node.ElseList)
		case *parse.WithNode:
			plantLoops(node.List)
			plantLoops(node.ElseList)
		}
	}
}

func begin(list *parse.ListNode, check parse.Node) {
	list.Nodes = append([]parse.Node{check}, list.Nodes...)
}

// parseText parses a text that is not too large for the stack.
func parseText(t *template.Template, text string) error {
	if count := strings.Count(text, "{{"); count > maxActions {
		return fmt.Errorf("%s: %d actions are too many for a template", t.Name(), count)
	}
	_, err := t.Parse(text)
	return err
}
