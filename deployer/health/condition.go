package health

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxCost bounds one evaluation, in the units in which Kubernetes bounds its own: far more than an honest look at a status
// needs, and over in well under a second.
const maxCost = 1_000_000

// Condition is an additional requirement, beside [Of], before an object counts as ready: an expression in the Common
// Expression Language over the variable object. It is safe for concurrent use.
type Condition struct {
	text    string
	program cel.Program
}

// NewCondition compiles an expression, which has to yield a boolean.
func NewCondition(expression string) (*Condition, error) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes())
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it yields %s and not a boolean", t)
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, err
	}
	return &Condition{expression, program}, nil
}

// Of evaluates the condition alone. An object for which it cannot be evaluated is not ready yet: its status may lack a
// field because its controller has not written one so far.
func (c *Condition) Of(ctx context.Context, object *unstructured.Unstructured) Status {
	result, _, err := c.program.ContextEval(ctx, map[string]any{"object": object.Object})
	if err != nil {
		return Status{Reason: "ConditionUnknown", Message: fmt.Sprintf("does not meet %s: %v", c.text, err)}
	}
	switch holds, isBool := result.Value().(bool); {
	case !isBool:
		return Status{Reason: "ConditionUnknown", Message: fmt.Sprintf("does not meet %s: it yields %s and not a boolean", c.text, result.Type().TypeName())}
	case !holds:
		return Status{Reason: "ConditionNotMet", Message: "does not meet " + c.text}
	}
	return ready
}
