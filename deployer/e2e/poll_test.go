package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poller is an HTTP client that asks a Service again and again and counts the answers.
type poller struct {
	pods          func() string // those of the Service's namespace
	stop, stopped chan struct{}
	mutex         sync.Mutex
	answers       int
	refused       int
	failures      []string // the first ones, with when and among which pods
	last          []byte
}

// mostFailures is how many refused requests are described: they come by the hundred.
const mostFailures = 20

// poll starts to ask a Service, until the script ends or wants the result.
func (s *session) poll(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || !strings.Contains(args[0], "/") || s.poller != nil {
		ts.Fatalf("usage, once: poll NAMESPACE/SERVICE")
	}
	namespace, name, _ := strings.Cut(args[0], "/")
	p := &poller{stop: make(chan struct{}), stopped: make(chan struct{}), pods: func() string { return s.podsOf(namespace, name) }}
	s.poller = p
	ask, err := s.asker(namespace, name)
	ts.Check(err)
	go func() {
		defer close(p.stopped)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				asked := time.Now()
				body, err := ask("/info")
				p.note(asked, body, err)
			}
		}
	}()
	ts.Defer(p.end)
}

func (p *poller) note(asked time.Time, body []byte, err error) {
	var failure string
	if err != nil {
		failure = fmt.Sprintf("%s, for %s: %v; pods: %s", asked.UTC().Format("15:04:05.000"), time.Since(asked).Round(time.Millisecond), err, p.pods())
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.answers, p.last = p.answers+1, body
	if err == nil {
		return
	}
	if p.refused++; len(p.failures) < mostFailures {
		p.failures = append(p.failures, failure)
	}
}

// podsOf describes the pods that a Service selects.
func (s *session) podsOf(namespace, name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client := s.cluster.Client().CoreV1()
	service, err := client.Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	pods, err := client.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: service.Spec.Selector})})
	if err != nil {
		return err.Error()
	}
	texts := make([]string, len(pods.Items))
	for i := range pods.Items {
		texts[i] = describePod(&pods.Items[i])
	}
	return strings.Join(texts, ", ")
}

// describePod returns the node of a pod, whether it is ready, and since when it has been deleted.
func describePod(pod *corev1.Pod) string {
	text := fmt.Sprintf("%s %s (%s", pod.Name, pod.Status.PodIP, pod.Status.Phase)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			text += fmt.Sprintf(", ready %s since %s", c.Status, c.LastTransitionTime.UTC().Format(time.TimeOnly))
		}
	}
	if at := pod.DeletionTimestamp; at != nil { // the end of its grace period
		grace := time.Duration(0)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		}
		text += ", asked to stop at " + at.Add(-grace).UTC().Format(time.TimeOnly)
	}
	return text + ")"
}

func (p *poller) end() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	<-p.stopped
}

// pollUntil waits for an answer with this text.
func (s *session) pollUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || s.poller == nil {
		ts.Fatalf("usage, after poll: poll-until TEXT")
	}
	deadline := waitDeadline()
	for {
		s.poller.mutex.Lock()
		last := s.poller.last
		s.poller.mutex.Unlock()
		if bytes.Contains(last, []byte(args[0])) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the last answer is %s", last)
		}
		time.Sleep(pollInterval)
	}
}

// pollResult ends the poll; every request must have been answered.
func (s *session) pollResult(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 || s.poller == nil {
		ts.Fatalf("usage, after poll: poll-result")
	}
	s.poller.end()
	ts.Logf("%d requests, %d failed", s.poller.answers, s.poller.refused)
	if s.poller.answers == 0 || s.poller.refused > 0 {
		ts.Fatalf("%d of %d requests were refused; the first:\n%s", s.poller.refused, s.poller.answers, strings.Join(s.poller.failures, "\n"))
	}
}
