package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poller is an HTTP client that asks a Service again and again and counts the answers. As proxies do, it asks once more where a connection
// is refused: once, in the moment in which kube-proxy changed its rules, one of 1,319 was although every server listened. A server that ends
// too early refuses connections for as long as the old rules lead to it: dozens, and second ones too.
type poller struct {
	state         func() string // of the Service's pods, and of the node's rules that lead to pods
	stop, stopped chan struct{}
	mutex         sync.Mutex
	answers       int
	again         []string // the failures of requests whose second connection was answered
	refused       int
	failures      []string // the first ones, with when and in which state
	last          []byte
}

const (
	// mostFailures is how many failed requests are described: they come by the hundred.
	mostFailures = 20
	// mostAgain is how many connections may be refused once.
	mostAgain = 1
)

// poll starts to ask a Service, until the script ends or wants the result.
func (s *session) poll(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || !strings.Contains(args[0], "/") || s.poller != nil {
		ts.Fatalf("usage, once: poll NAMESPACE/SERVICE")
	}
	namespace, name, _ := strings.Cut(args[0], "/")
	p := &poller{stop: make(chan struct{}), stopped: make(chan struct{}), state: func() string { return s.podsOf(namespace, name) + "; " + s.rules() }}
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
				if first := err; errors.Is(first, syscall.ECONNREFUSED) {
					if body, err = ask("/info"); err == nil {
						p.again = append(p.again, p.failure(asked, first))
					}
				}
				p.note(asked, body, err)
			}
		}
	}()
	ts.Defer(p.end)
}

func (p *poller) failure(asked time.Time, err error) string {
	return fmt.Sprintf("%s, for %s: %v; %s", asked.UTC().Format("15:04:05.000"), time.Since(asked).Round(time.Millisecond), err, p.state())
}

func (p *poller) note(asked time.Time, body []byte, err error) {
	var failure string
	if err != nil {
		failure = p.failure(asked, err)
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
	return "pods: " + strings.Join(texts, ", ")
}

// rules returns the node's rules that lead from Services to pods.
func (s *session) rules() string {
	var table bytes.Buffer
	list := exec.Command("nft", "list", "table", "ip", "kube-proxy")
	list.Stdout = &table
	if err := s.cluster.RunOnNode(list); err != nil {
		return err.Error()
	}
	var rules []string
	for line := range strings.Lines(table.String()) {
		if strings.Contains(line, "numgen") {
			rules = append(rules, strings.TrimSpace(line))
		}
	}
	return "rules: " + strings.Join(rules, ", ")
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

// pollResult ends the poll; every request must have been answered, one of them perhaps on its second connection.
func (s *session) pollResult(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 || s.poller == nil {
		ts.Fatalf("usage, after poll: poll-result")
	}
	s.poller.end()
	p := s.poller
	ts.Logf("%d requests, %d failed, %d asked again", p.answers, p.refused, len(p.again))
	if p.answers == 0 || p.refused > 0 || len(p.again) > mostAgain {
		ts.Fatalf("of %d requests, %d failed and %d were asked again:\n%s", p.answers, p.refused, len(p.again), strings.Join(append(p.failures, p.again...), "\n"))
	}
}
