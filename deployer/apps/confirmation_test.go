package apps_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
)

func TestConfirmDeletion(t *testing.T) {
	for want, objects := range map[string]int{
		"delete Shop blue in environment test with 0 objects that came of it": 0,
		"delete Shop blue in environment test with 1 object that came of it":  1,
		"delete Shop blue in environment test with 2 objects that came of it": 2,
	} {
		one := &schema.App{Kind: "Shop", Name: "blue", Environment: "test", Objects: make([]schema.AppObject, objects)}
		if got := apps.ConfirmDeletion(one); got.Question != want || got.Name != "blue" {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}
