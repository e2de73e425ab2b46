package chart

import (
	"context"
	"fmt"
	"sync"
)

// LookupFunc returns an object of a cluster, or with an empty name the list of those of a kind, in a namespace or with
// an empty one in all of them. It returns an empty map for a missing object.
type LookupFunc func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error)

// maxLookups bounds the lookups of one rendering in a cluster.
const maxLookups = 1000

// lookups reads from a cluster for the templates, and records the answers.
type lookups struct {
	find LookupFunc

	mu      sync.Mutex
	answers map[string]map[string]any // the same question has the same answer throughout a rendering
}

func (l *lookups) function(ctx context.Context) func(apiVersion, kind, namespace, name string) (map[string]any, error) {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		if l.find == nil {
			return map[string]any{}, nil
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		question := fmt.Sprintf("%s %s %s/%s", apiVersion, kind, namespace, name)
		if answer, ok := l.answers[question]; ok {
			return answer, nil
		}
		if len(l.answers) == maxLookups {
			return nil, fmt.Errorf("more than %d objects are looked up", maxLookups)
		}
		answer, err := l.find(ctx, apiVersion, kind, namespace, name)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", question, err)
		}
		l.answers[question] = answer
		return answer, nil
	}
}
