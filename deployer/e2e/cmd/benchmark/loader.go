//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// auditPolicy lets the API server note what is done with what the loader has in its namespace, as its clock is the same for all.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    namespaces: [solutionctl-system]
    resources: [{group: "", resources: [configmaps, secrets]}, {group: batch, resources: [jobs]}]
    verbs: [create, update, patch, get]
  - level: None
`

// auditEntry is an entry in the audit log of the API server.
type auditEntry struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef struct{ Resource, Name string }
	Received  time.Time          `json:"requestReceivedTimestamp"`
	Answered  time.Time          `json:"stageTimestamp"`
	Status    struct{ Code int } `json:"responseStatus"`
}

// records returns the entries since a moment.
func (p *platform) records(since time.Time) ([]auditEntry, error) {
	file, err := os.Open(filepath.Join(p.Logs, "audit.log"))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var list []auditEntry
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var one auditEntry
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, err
		}
		if one.Received.After(since) && one.Status.Code < 300 {
			list = append(list, one)
		}
	}
	return list, lines.Err()
}

// loaderRuns has the measurements of all starts of the loader.
type loaderRuns struct {
	*platform
	started, payload, memory, cpu []float64 // the whole start, until the payload is read, MiB, processor time of the Job
	unchanged, repaired           []float64
}

const (
	loaderAccount = "system:serviceaccount:solutionctl-system:solutionctl-loader"
	loaderFile    = "loader.yaml"
)

func (p *platform) configureLoader(environment string) error {
	text := fmt.Sprintf(`apiVersion: solutionctl.io/v1alpha1
kind: LoaderConfiguration
spec:
  environments: [{name: %s, solutions: [{name: platform}]}]
  timeout: 5m
  repair: {mode: repair}
`, environment)
	return os.WriteFile(p.path(loaderFile), []byte(text), 0o644)
}

// load is the loader as a contestant: what counts begins when the Job is created.
func (l *loaderRuns) load(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
	watched := watchJob()
	before := time.Now()
	took, err := l.start(ctx, p, namespace)
	pod := watched()
	if err != nil {
		return 0, err
	}
	list, err := p.records(before)
	if err != nil {
		return 0, err
	}
	created, ready, payload := spans(list)
	if created.IsZero() || pod.memory == 0 || payload.IsZero() {
		return 0, fmt.Errorf("the Job of the loader was not observed (%s), its pod or what it reads (%s)", created, payload)
	}
	l.started = append(l.started, took.Seconds())
	l.payload = append(l.payload, payload.Sub(pod.started).Seconds())
	l.memory, l.cpu = append(l.memory, pod.memory), append(l.cpu, pod.cpu.Seconds())
	return ready.Sub(created), p.solutionctl(ctx, "deploy", "loader", "stop", "-f", loaderFile)
}

func (l *loaderRuns) start(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
	if err := p.configureLoader(namespace); err != nil {
		return 0, err
	}
	return timed(func() error { return p.solutionctl(ctx, "deploy", "loader", "start", "-f", loaderFile) })
}

// killed is the loader whose program is killed in its pod when half of the components are there.
func (l *loaderRuns) killed(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
	before := time.Now()
	var group errgroup.Group
	group.Go(func() error {
		return until(ctx, func() error {
			list, err := p.Client().AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) < len(parts)/2 {
				return errors.Join(err, errors.New("less than half is there"))
			}
			pid := findProcess(loaderRun)
			if pid == 0 {
				return errors.New("its program does not run")
			}
			return syscall.Kill(pid, syscall.SIGKILL)
		})
	})
	_, err := l.start(ctx, p, namespace)
	if err = errors.Join(err, group.Wait()); err != nil {
		return 0, err
	}
	list, err := p.records(before)
	if err != nil {
		return 0, err
	}
	created, ready, _ := spans(list)
	return ready.Sub(created), p.solutionctl(ctx, "deploy", "loader", "stop", "-f", loaderFile)
}

// loaderRun is how the program in the pod is called.
const loaderRun = "deploy\x00loader\x00run\x00"

// spans finds when the Job was created, when it wrote for the last time how far it is, and when it had read what it deploys.
func spans(list []auditEntry) (created, ready, payload time.Time) {
	for _, one := range list {
		ours := one.User.Username == loaderAccount
		switch {
		case one.ObjectRef.Resource == "jobs" && one.Status.Code == http.StatusCreated:
			created = one.Answered
		case ours && one.ObjectRef.Resource == "configmaps" && one.ObjectRef.Name == "loader" && one.Verb == "update":
			ready = one.Answered
		case ours && strings.HasPrefix(one.ObjectRef.Name, "content.imports.") && payload.IsZero():
			payload = one.Answered
		}
	}
	return created, ready, payload
}

// podSeen has the observations of the program in a pod.
type podSeen struct {
	started time.Time
	memory  float64 // the most that was resident (VmHWM), in MiB
	cpu     time.Duration
}

// watchJob looks at the processes of this host for the loader's in its pod, until it is asked what it has seen.
func watchJob() func() podSeen {
	done := make(chan struct{})
	var seen podSeen
	var group sync.WaitGroup
	group.Go(func() {
		pid := 0
		for tick := time.Tick(25 * time.Millisecond); ; {
			select {
			case <-done:
				return
			case <-tick:
			}
			if pid == 0 {
				// The kernel's start time is that of the process before it executed the program, some while earlier.
				pid, seen.started = findProcess(loaderRun), time.Now()
			}
			if pid != 0 {
				seen.look(pid)
			}
		}
	})
	return func() podSeen {
		close(done)
		group.Wait()
		return seen
	}
}

// findProcess returns a process with these arguments, 0 when there is none.
func findProcess(args string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(data), args) && !strings.HasPrefix(string(data), "runc") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

// ticks is the number of clock ticks in a second, the unit of process times in /proc.
const ticks = 100

// look reads the kernel's numbers of a process, as long as it exists.
func (s *podSeen) look(pid int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			n, _ := strconv.ParseFloat(fields[1], 64) // the kernel wrote it
			s.memory = max(s.memory, n/1024)
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may have blanks
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return
	}
	number := func(i int) float64 {
		n, _ := strconv.ParseFloat(fields[i-3], 64) // as proc_pid_stat(5) counts
		return n / ticks
	}
	s.cpu = time.Duration((number(14) + number(15)) * float64(time.Second))
}

// afterwards measures what comes after a first start: one that has nothing to do, and repairs.
func (l *loaderRuns) afterwards(ctx context.Context) error {
	const environment = "afterwards"
	if err := l.configureLoader(environment); err != nil {
		return err
	}
	start := func() error { return l.solutionctl(ctx, "deploy", "loader", "start", "-f", loaderFile) }
	if err := start(); err != nil {
		return err
	}
	for range 5 {
		took, err := timed(start)
		if err != nil {
			return err
		}
		l.unchanged = append(l.unchanged, took.Seconds())
	}
	for i, gone := range []string{"identity", "metering", "dashboard"} {
		took, err := l.repair(ctx, environment, gone, fmt.Sprintf("repair-%d", i))
		if err != nil {
			return fmt.Errorf("repair %s: %w", gone, err)
		}
		l.repaired = append(l.repaired, took.Seconds())
	}
	return nil
}

// repair deletes a Deployment and starts the Job of the CronJob, and reports how long it takes from there until it is ready again.
func (l *loaderRuns) repair(ctx context.Context, namespace, name, job string) (time.Duration, error) {
	deployments := l.Client().AppsV1().Deployments(namespace)
	if err := deployments.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return 0, err
	}
	started := time.Now()
	cron, err := l.Client().BatchV1().CronJobs(cluster.SystemNamespace).Get(ctx, "loader-repair", metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	created := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: job}, Spec: cron.Spec.JobTemplate.Spec}
	if _, err = l.Client().BatchV1().Jobs(cron.Namespace).Create(ctx, created, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	err = until(ctx, func() error {
		found, missing := deployments.Get(ctx, name, metav1.GetOptions{})
		if missing == nil && found.Status.ReadyReplicas == 0 {
			missing = errors.New("it is not ready")
		}
		return missing
	})
	return time.Since(started), err
}

// print prints what is known of the loader.
func (l *loaderRuns) print() {
	fmt.Println("| the loader | measured | target |\n|---|---|---|")
	for _, row := range []struct {
		what   string
		values []float64
		format string
		target string
	}{
		{"`deploy loader start` as a whole", l.started, "%.1f s", ""},
		{"a start that has nothing to do", l.unchanged, "%.2f s", "≤ 0.5 s"},
		{"a deleted Deployment ready again, from the creation of the Job", l.repaired, "%.1f s", "≤ 10 s"},
		{"payload read after the start of the program", l.payload, "%.3f s", "≤ 0.15 s"},
		{"processor time of the Job", l.cpu, "%.2f s", "≤ 0.3 s"},
		{"memory of the Job (VmHWM)", l.memory, "%.0f MiB", "≤ 96 MiB"},
	} {
		fmt.Printf("| %s | "+row.format+" | %s |\n", row.what, median(row.values), row.target)
	}
}
