package live_test

import (
	"context"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestUsersShareOperations: a user with any number of logins neither hides the results of others nor keeps them from working.
func TestUsersShareOperations(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{}, 1)
	operations := live.NewOperations(ctx, time.Now, func(*session.Identity) { ended <- struct{}{} })
	begin := func(user, key string, ends bool) (*live.Operation, error) {
		return operations.Begin(&session.Identity{Key: key, User: user}, &schema.Operation{}, "", func(*live.Operation) live.Work {
			return func(ctx context.Context, _ report.Sink) (*schema.Operation, error) {
				if !ends {
					<-ctx.Done()
				}
				return &schema.Operation{}, nil
			}
		})
	}
	admin := &session.Identity{Key: "admin", User: "admin"}
	first, err := begin("admin", "admin", true)
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	for n := range 150 {
		if _, err := begin("few", string(rune('a'+n%20)), true); err != nil {
			t.Fatal(err)
		}
		<-ended
	}
	if operations.Find(admin, first.ID) == nil {
		t.Error("operations of one user displaced the result of another one")
	}
	refused := 0
	for range 40 {
		if _, err := begin("few", "a", false); report.CodeOf(err) == report.Unavailable {
			refused++
		}
	}
	if _, err := begin("admin", "admin", false); err != nil || refused != 24 {
		t.Errorf("%d of one user were refused, and that of another one: %v", refused, err)
	}
	go func() {
		for range ended { // those that end now
		}
	}()
	end()
	operations.Wait()
	close(ended)
}
