package notify_test

import (
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer/support/notify"
	"github.com/solutionctl/solutionctl/schema"
)

func ExampleJournal_Compare() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	diagnosis := &schema.Diagnosis{Checks: []schema.Check{{Area: "host", Name: "store", Result: schema.CheckProblem, Message: "the store is full"}}}
	journal := &notify.Journal{}
	for range 2 {
		changes := journal.Compare(notify.Observed{Diagnosis: diagnosis}, now, 10*time.Minute)
		for _, c := range changes {
			fmt.Println(c.State, c.Subject+":", c.Summary)
		}
		journal.Confirm(changes) // once the webhook has them
	}
	// Output: firing host store: the store is full
}
