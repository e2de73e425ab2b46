//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Outcome is how it went with a point.
type Outcome string

// The outcomes.
const (
	Good      Outcome = "good"      // the next run left everything as it should be
	Bad       Outcome = "bad"       // it did not
	Unknown   Outcome = "unknown"   // something else stood in the way
	Unreached Outcome = "unreached" // the run had fewer steps this time, and was not killed
)

// Result is the result of killing a verb at a point.
type Result struct {
	Point
	What    string  `json:"what,omitempty"` // the step
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"` // why it is bad
}

// Clean is an undisturbed verb.
type Clean struct {
	Calls []string
	Files int
	dump  dump
}

// runLimit is how long what comes after a killed run may take, on a machine that is busy.
const runLimit = 2 * time.Minute

// Clean runs a verb twice without killing it. Both runs must leave the same state, which a killed run must lead to as well.
func (l *Lane) Clean(ctx context.Context, v *Verb) (*Clean, error) {
	if clean := l.clean[v.Name]; clean != nil {
		return clean, nil
	}
	clean := &Clean{}
	if err := l.setUp(ctx, v); err != nil {
		return nil, err
	}
	stop := l.pods(ctx, v)
	r, calls, _, err := l.runCalls(ctx, 0, false, v.Args)
	stop()
	if err == nil {
		err = v.complete(r)
	}
	if err == nil {
		clean.Calls = calls
		clean.dump, err = l.judged(ctx, v)
	}
	if err != nil {
		return nil, err
	}
	if err = l.setUp(ctx, v); err != nil {
		return nil, err
	}
	stop = l.pods(ctx, v)
	r, tracer, err := l.runFiles(ctx, 0, false, v.Args)
	stop()
	if err == nil {
		err = v.complete(r)
	}
	if err != nil {
		return nil, err
	}
	clean.Files = tracer.Calls
	again, err := l.judged(ctx, v)
	if err != nil {
		return nil, err
	}
	if text := clean.dump.difference(again); text != "" {
		return nil, fmt.Errorf("%s: two undisturbed runs differ:\n%s", v.Name, text)
	}
	l.clean[v.Name] = clean
	return clean, nil
}

// pods lets those of the loader run where a verb has some, until what it returns is called.
func (l *Lane) pods(ctx context.Context, v *Verb) (stop func()) {
	if !v.pods {
		return func() {}
	}
	return l.kubelet(ctx)
}

// judged is the dump after a complete run, with which nothing must be wrong.
func (l *Lane) judged(ctx context.Context, v *Verb) (dump, error) {
	d, err := l.dump(ctx)
	if err != nil {
		return nil, err
	}
	var problems []string
	if v.prepare != nil {
		if problems, err = l.lost(ctx, v); err != nil {
			return nil, err
		}
	}
	held, err := l.held(ctx)
	if err != nil {
		return nil, err
	}
	orphans, err := l.orphans(ctx)
	if err != nil {
		return nil, err
	}
	twice, err := l.twice(ctx)
	if err != nil {
		return nil, err
	}
	unlisted, err := l.unlisted(ctx)
	if err != nil {
		return nil, err
	}
	problems = slices.Concat(problems, held, orphans, twice, unlisted)
	if len(problems) > 0 {
		return nil, &wrong{strings.Join(problems, "\n")}
	}
	return d, nil
}

// wrong is a cluster that is not as it should be, as opposed to one that could not be examined.
type wrong struct{ text string }

func (w *wrong) Error() string { return w.text }

// Kill runs a verb, kills it at a point and runs it again. An error means that nothing was found out.
func (l *Lane) Kill(ctx context.Context, v *Verb, p Point) (result *Result, err error) {
	defer func() {
		if err != nil {
			l.base = unknown
		}
	}()
	clean, err := l.Clean(ctx, v)
	if err != nil {
		return nil, err
	}
	if err = l.setUp(ctx, v); err != nil {
		return nil, err
	}
	result = &Result{Point: p, Outcome: Good}
	defer l.pods(ctx, v)()
	if result.What, err = l.killAt(ctx, v, p); err != nil {
		return nil, err
	}
	if result.What == "" {
		result.Outcome = Unreached
		return result, nil
	}
	unlisted, err := l.unlisted(ctx)
	if err = errors.Join(err, l.noteDead(ctx)); err != nil {
		return nil, err
	}
	if len(unlisted) > 0 {
		l.base = unknown
		result.Outcome, result.Detail = Bad, strings.Join(unlisted, "\n")
		return result, nil
	}
	limited, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	err = l.follow(limited, v, p.Then, clean)
	if found := (*wrong)(nil); errors.As(err, &found) {
		l.base = unknown // the state is unknown
		result.Outcome, result.Detail = Bad, err.Error()
		return result, nil
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// killAt runs a verb and kills it. It returns the step, "" when the run was over before.
func (l *Lane) killAt(ctx context.Context, v *Verb, p Point) (string, error) {
	if p.Kind == Files {
		r, tracer, err := l.runFiles(ctx, p.N, p.After, v.Args)
		if err != nil || tracer.Killed.Call != "" {
			return tracer.Killed.String(), err
		}
		return "", v.complete(r)
	}
	r, calls, killed, err := l.runCalls(ctx, p.N, p.After, v.Args)
	if err != nil || killed {
		return calls[len(calls)-1], err
	}
	return "", v.complete(r)
}

// follow runs the commands after a killed run, and returns what is wrong then.
func (l *Lane) follow(ctx context.Context, v *Verb, then Then, clean *Clean) error {
	if v.pods && then != Again { // what they do would be in the way
		if err := l.idle(ctx); err != nil {
			return err
		}
	}
	switch then {
	case Finish:
		defer l.kubelet(ctx)()
		return l.again(ctx, v.finishes, l.clean[v.finishes.Name])
	case Back:
		// It may find nothing to roll back; only the resulting state counts.
		if _, err := l.run(ctx, v.back...); err != nil {
			return err
		}
		_, err := l.judged(ctx, v)
		return err
	case Resume:
		r, err := l.run(ctx, "deploy", "resume")
		if err != nil {
			return err
		}
		if v.deletes && (r.code() == "data-loss" || r.code() == "in-use") {
			return l.again(ctx, v, clean) // it deletes no data, and nothing that is not ours
		}
		if err = r.ok(); err != nil {
			return &wrong{err.Error()}
		}
		if v.forgets {
			return l.again(ctx, v, clean) // what has no record has none that could be resumed
		}
		if _, err := l.judged(ctx, v); err != nil {
			return fmt.Errorf("after deploy resume: %w", err)
		}
	case Again:
	}
	return l.again(ctx, v, clean)
}

// again runs a verb once more and returns the differences from an undisturbed run.
func (l *Lane) again(ctx context.Context, v *Verb, clean *Clean) error {
	r, err := l.run(ctx, v.Args...)
	if err != nil {
		return err
	}
	if err = v.complete(r); err != nil && !slices.Contains(v.done, r.code()) {
		return &wrong{err.Error()}
	}
	now, err := l.judged(ctx, v)
	if err != nil {
		return err
	}
	want := clean.dump
	if v.fails != "" { // each time that it fails is in the history
		want, now = want.withoutHistory(), now.withoutHistory()
	}
	if text := want.difference(now); text != "" {
		return &wrong{text}
	}
	return nil
}

// held names the locks that a living process has not released.
func (l *Lane) held(ctx context.Context) ([]string, error) {
	list, err := l.client.Resource(leaseResource).Namespace(systemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, lease := range list.Items {
		if holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity"); holder != "" && !l.dead[holder] {
			problems = append(problems, "the lock "+lease.GetName()+" is held")
		}
	}
	return problems, nil
}

// String names the point and how it went.
func (r *Result) String() string {
	when := "before"
	if r.After {
		when = "after"
	}
	return fmt.Sprintf("%s, killed %s %s %d (%s), then %s: %s", r.Verb, when, r.Kind, r.N, r.What, r.Then, r.Outcome)
}
