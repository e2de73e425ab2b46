package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Content is stored with a revision: the rendered objects, the tasks, and the generated values of the caller.
type Content struct {
	Objects         []*unstructured.Unstructured
	Tasks           []Task
	GeneratedValues []byte
}

// storedTask is the line of a task. It has no apiVersion, which distinguishes it from objects.
type storedTask struct {
	Kind   string         `json:"kind"`
	Task   schema.Task    `json:"task"`
	Object map[string]any `json:"object"`
}

// storedValues is the last line, with the generated values.
type storedValues struct {
	Kind string `json:"kind"`
	Data []byte `json:"data"`
}

// Kinds of lines that are not objects. The word "Memory" is part of the format.
const (
	taskKind   = "Task"
	valuesKind = "Memory"
)

// encode writes objects, tasks and generated values, one in a line.
func (c *Content) encode() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, object := range c.Objects {
		if err := encoder.Encode(object.Object); err != nil {
			return nil, report.Errorf(report.Invalid, "%s: %w", refOf(object), err)
		}
	}
	for _, task := range c.Tasks {
		if err := encoder.Encode(storedTask{taskKind, task.Task, task.Object.Object}); err != nil {
			return nil, report.Errorf(report.Invalid, "%s: %w", refOf(task.Object), err)
		}
	}
	if c.GeneratedValues != nil {
		if err := encoder.Encode(storedValues{valuesKind, c.GeneratedValues}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func decodeContent(data []byte) (*Content, error) {
	c := &Content{}
	for line := range bytes.Lines(data) {
		object := new(unstructured.Unstructured)
		if err := object.UnmarshalJSON(line); err != nil {
			return nil, fmt.Errorf("object %d: %w", len(c.Objects)+1, err)
		}
		switch kind := object.GetKind(); {
		case object.GetAPIVersion() == "" && kind == taskKind:
			task, err := decodeTask(object)
			if err != nil {
				return nil, fmt.Errorf("task %d: %w", len(c.Tasks)+1, err)
			}
			c.Tasks = append(c.Tasks, task)
		case object.GetAPIVersion() == "" && kind == valuesKind:
			var last storedValues
			if err := json.Unmarshal(line, &last); err != nil {
				return nil, fmt.Errorf("generated values: %w", err)
			}
			c.GeneratedValues = last.Data
		default:
			c.Objects = append(c.Objects, object)
		}
	}
	return c, nil
}

func decodeTask(line *unstructured.Unstructured) (task Task, err error) {
	settings, err := json.Marshal(line.Object["task"])
	if err == nil {
		err = json.Unmarshal(settings, &task.Task)
	}
	if err != nil {
		return task, err
	}
	object, _ := line.Object["object"].(map[string]any)
	task.Object = &unstructured.Unstructured{Object: object}
	return task, nil
}

// Objects returns the objects of a revision as they were rendered, for a rollback to it.
func (e *Engine) Objects(ctx context.Context, key record.Key, r *schema.DeploymentRevision) ([]*unstructured.Unstructured, error) {
	content, err := e.Content(ctx, key, r)
	if err != nil {
		return nil, err
	}
	return content.Objects, nil
}

// Content returns the content of a revision, for a rollback to it.
func (e *Engine) Content(ctx context.Context, key record.Key, r *schema.DeploymentRevision) (*Content, error) {
	data, err := e.LoadContent(ctx, key.ID(), r.Content)
	if code := report.CodeOf(err); code == report.NotFound || code == report.Corrupt {
		return nil, report.Errorf(report.Corrupt, "objects of %s, revision %d: %w", key, r.Number, err).
			WithHint("rebuild the record from the objects in the cluster: %s", report.Run("deploy repair").With("records"))
	}
	if err != nil {
		return nil, fmt.Errorf("objects of %s, revision %d: %w", key, r.Number, err)
	}
	return decodeContent(data)
}
