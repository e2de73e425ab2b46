package schema_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

func TestOperationTitle(t *testing.T) {
	created := func(action schema.Action) schema.Operation {
		return schema.Operation{Operation: "create", Environment: "test", Parts: []schema.OperationPart{
			{Namespace: "test-eu", Changes: []schema.Change{{Action: action}}},
		}}
	}
	for want, o := range map[string]schema.Operation{
		"activated demo 1.0.0":                        {Operation: "activate", Solution: "demo", Version: "1.0.0"},
		"to activate demo 1.0.0":                      {Operation: "activate", Solution: "demo", Version: "1.0.0", Planned: true},
		"deactivated demo":                            {Operation: "deactivate", Solution: "demo"},
		"added demo 1.0.0 to environment test":        {Operation: "add", Solution: "demo", Version: "1.0.0", Environment: "test"},
		"removed demo from environment test":          {Operation: "remove", Solution: "demo", Environment: "test"},
		"upgraded to demo 1.1.0 in environment test":  {Operation: "upgrade", Solution: "demo", Version: "1.1.0", Environment: "test"},
		"to downgrade demo 1.0.0 in environment test": {Operation: "downgrade", Solution: "demo", Version: "1.0.0", Environment: "test", Planned: true},
		"rolled back to demo in environment test":     {Operation: "rollback", Solution: "demo", Environment: "test"},
		"repaired":                                              {Operation: "repair"},
		"compared demo in environment test":                     {Operation: "diff", Solution: "demo", Environment: "test", Planned: true},
		"deleted environment test":                              {Operation: "delete", Environment: "test", Parts: created(schema.ActionDelete).Parts},
		"deleted namespace test-eu of environment test":         {Operation: "delete", Environment: "test", Namespace: "test-eu", Parts: created(schema.ActionDelete).Parts},
		"there is no environment tset":                          {Operation: "delete", Environment: "tset"},
		"to purge":                                              {Operation: "purge", Planned: true},
		"polish demo in environment test":                       {Operation: "polish", Solution: "demo", Environment: "test"},
		"environment test: namespace test-eu created":           created(schema.ActionCreate),
		"environment test: namespace test-eu adopted":           created(schema.ActionAdopt),
		"environment test: namespace test-eu was there already": created(schema.ActionNone),
		"environment test: namespace test-eu was there; its description is changed": created(schema.ActionUpdate),
	} {
		if got := o.Title(); got != want {
			t.Errorf("%s, planned %t: got %q, want %q", o.Operation, o.Planned, got, want)
		}
	}
}

func TestOperationHeading(t *testing.T) {
	for want, o := range map[string]schema.Operation{
		"Activate demo 1.0.0":                         {Operation: "activate", Solution: "demo", Version: "1.0.0"},
		"Add demo 1.0.0 to environment test":          {Operation: "add", Solution: "demo", Version: "1.0.0", Environment: "test", Planned: true},
		"Upgrade to demo 1.10.0 in environment test":  {Operation: "upgrade", Solution: "demo", Version: "1.10.0", Environment: "test"},
		"Roll back to demo 1.0.0 in environment test": {Operation: "rollback", Solution: "demo", Version: "1.0.0", Environment: "test"},
		"Remove demo from environment test":           {Operation: "remove", Solution: "demo", Environment: "test"},
		"Create environment test":                     {Operation: "create", Environment: "test"},
		"Delete environment test":                     {Operation: "delete", Environment: "test", Planned: true},
		"Delete namespace eu of environment test":     {Operation: "delete", Environment: "test", Namespace: "eu", Planned: true},
		"Delete wall in environment test":             {Operation: "delete-app", Solution: "wall", Environment: "test"},
		"Resume":                                      {Operation: "resume", Planned: true},
		"Polish demo in environment test":             {Operation: "polish", Solution: "demo", Environment: "test"},
	} {
		if got := o.Heading(); got != want {
			t.Errorf("%s: got %q, want %q", o.Operation, got, want)
		}
	}
}

func TestOperationPart(t *testing.T) {
	several := []schema.Change{
		{Action: schema.ActionNone},
		{Action: schema.ActionDelete},
		{Action: schema.ActionCreate},
		{Action: schema.ActionKeep},
		{Action: schema.ActionCreate},
		{Action: schema.ActionReplace},
	}
	for name, test := range map[string]struct {
		part              schema.OperationPart
		place, done, plan string
	}{
		"nothing": {schema.OperationPart{}, "cluster", "no objects", "no objects"},
		"several": {
			schema.OperationPart{Namespace: "test", Changes: several},
			"namespace test", "2 created, 1 replaced, 1 deleted, 1 kept, 1 unchanged", "2 to create, 1 to replace, 1 to delete, 1 kept, 1 unchanged",
		},
		"one of many Solutions": {
			schema.OperationPart{Namespace: "test", Solution: "demo", Version: "1.0.0", Resumes: true, Changes: []schema.Change{{Action: schema.ActionUpdate}}},
			"namespace test, demo 1.0.0, finishing what was interrupted", "1 changed", "1 to change",
		},
		"no version": {
			schema.OperationPart{Solution: "demo", Changes: []schema.Change{{Action: schema.ActionAdopt}, {Action: schema.ActionSkip}}},
			"cluster, demo", "1 adopted, 1 skipped", "1 to adopt, 1 skipped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			done, plan := schema.Operation{}, schema.Operation{Planned: true}
			if got := test.part.Place(); got != test.place {
				t.Errorf("place: got %q, want %q", got, test.place)
			}
			if got := done.Summary(&test.part); got != test.done {
				t.Errorf("done: got %q, want %q", got, test.done)
			}
			if got := plan.Summary(&test.part); got != test.plan {
				t.Errorf("planned: got %q, want %q", got, test.plan)
			}
		})
	}
}

func TestNothing(t *testing.T) {
	for verb, want := range map[string]string{"diff": "no differences", "add": "nothing to do"} {
		if got := (&schema.Operation{Operation: verb}).Nothing(); got != want {
			t.Errorf("%s: got %q, want %q", verb, got, want)
		}
	}
}

func TestHistoryPlace(t *testing.T) {
	for want, entry := range map[string]schema.HistoryEntry{
		"cluster":      {},
		"test":         {Environment: "test", Namespace: "test"},
		"gone":         {Namespace: "gone"},
		"test/test-eu": {Environment: "test", Namespace: "test-eu"},
	} {
		if got := entry.Place(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
