package scripttest_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solutionctl/solutionctl/schema/report/scripttest"
)

func ExampleFails() {
	var t *testing.T // of the test that runs the scripts
	run := func() {
		testscript.Run(t, testscript.Params{
			Dir: "testdata/script", Cmds: map[string]func(*testscript.TestScript, bool, []string){"fails": scripttest.Fails},
		})
	}
	_ = run
}
