package lint

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/kube/schemas"
	"github.com/solutionctl/solutionctl/lint/target"
)

// validated has the problems of each object by the description of its kind.
var validated = fact(func(_ context.Context, t *subject) map[*target.Object][]schemas.Problem {
	objects := t.Objects()
	problems := make([][]schemas.Problem, len(objects))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	const batch = 64
	for first := 0; first < len(objects); first += batch {
		group.Go(func() error {
			for i := first; i < min(first+batch, len(objects)); i++ {
				problems[i] = t.Kubernetes().Validate(objects[i].Value)
			}
			return nil
		})
	}
	_ = group.Wait() // nothing fails
	found := map[*target.Object][]schemas.Problem{}
	for i, o := range objects {
		if len(problems[i]) > 0 {
			found[o] = problems[i]
		}
	}
	return found
})
