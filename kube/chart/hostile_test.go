package chart_test

import (
	"bufio"
	"bytes"
	_ "embed" // for the templates
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/kube/chart"
)

// Bounds for one hostile template.
const (
	hostileTime   = 5 * time.Second // of a processor
	hostileMemory = 128 << 10       // KiB
)

//go:embed testdata/hostile.txt
var hostileTemplates string

// hostile are the templates in testdata/hostile.txt.
func hostile(t *testing.T) (templates [][2]string) {
	t.Helper()
	for line := range strings.Lines(hostileTemplates) {
		if line[0] == '#' {
			continue
		}
		name, template, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			t.Fatalf("%s has no template", name)
		}
		templates = append(templates, [2]string{name, template})
	}
	return templates
}

// outcome is the result of a template.
type outcome struct {
	Err    string
	Time   time.Duration // of processors
	Memory int           // KiB at most; 0 where that is not known
}

// sampled is how many templates one of the sample of a short test stands for.
const sampled = 4

// long is a template of the sample that takes seconds of a processor until its time is up. In short mode, loop-include ends so.
const long = "loop-bcrypt"

// TestHostileTemplates renders each of many templates that were written to end the program, in processes of their own. A short test renders a
// sample, always the same.
func TestHostileTemplates(t *testing.T) {
	parent := t
	idle := make(chan *process, runtime.GOMAXPROCS(0))
	for range cap(idle) {
		idle <- nil
	}
	t.Cleanup(func() {
		for range cap(idle) {
			if child := <-idle; child != nil {
				child.stop()
			}
		}
	})
	for i, test := range hostile(t) {
		name, template := test[0], test[1]
		if testing.Short() && (i%sampled != 0 || name == long) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := <-idle
			if child == nil {
				child = startHostile(parent)
			}
			got, err := child.render(template)
			if err != nil {
				idle <- nil
				t.Fatalf("the program ended: %v", err)
			}
			idle <- child
			if !raceDetector() && (got.Time > hostileTime || got.Memory > hostileMemory) {
				t.Errorf("it took %s and %d MiB: %s", got.Time, got.Memory>>10, got.Err)
			}
			if !strings.HasPrefix(name, "ok-") && !place.MatchString(got.Err) {
				t.Errorf("err = %.1000q", got.Err)
			}
			t.Logf("%s %d MiB %.200s", got.Time, got.Memory>>10, got.Err)
		})
	}
}

// place matches the place of an error in a template.
var place = regexp.MustCompile(`web/templates/x\.yaml(:1:\d+|, document at line \d+)?: `)

// process renders templates. It is this test in another process, so that a template that ends it ends nothing else.
type process struct {
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
	cmd    *exec.Cmd
}

func startHostile(t *testing.T) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestRenderHostile$")}
	p.cmd.Env = append(os.Environ(), "RENDER_HOSTILE=1", "GOGC=100") // where memory is measured, as it is by default
	p.cmd.Stderr = &p.errors
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err = p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) render(template string) (got outcome, err error) {
	if _, err = fmt.Fprintln(p.in, template); err == nil {
		var line []byte
		if line, err = p.out.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &got)
		}
	}
	if err != nil {
		p.stop()
		err = fmt.Errorf("%w: %.500s", err, p.errors.String())
	}
	return got, err
}

func (p *process) stop() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// TestRenderHostile renders the templates that it reads, for the test above.
func TestRenderHostile(t *testing.T) {
	if os.Getenv("RENDER_HOSTILE") == "" {
		t.Skip("this is the other process of TestHostileTemplates")
	}
	templates := bufio.NewReader(os.Stdin)
	for {
		template, err := templates.ReadString('\n')
		if err != nil {
			os.Exit(0)
		}
		debug.FreeOSMemory()
		_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the most memory, from here
		start := processorTime()
		got := outcome{Err: renderHostile(t, strings.TrimSuffix(template, "\n"))}
		got.Time, got.Memory = processorTime()-start, mostMemory()
		line, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(line))
	}
}

func renderHostile(t *testing.T, template string) string {
	t.Helper()
	files := web()
	clear(files)
	files["web/Chart.yaml"] = "apiVersion: v2\nname: web\nversion: 1.2.0\n"
	files["web/values.yaml"] = "a: {b: c}\n"
	files["web/"+strings.Repeat("a", 35)] = ""
	files["web/large"] = strings.Repeat("x", 1<<20)
	files["web/templates/x.yaml"] = template
	c, err := chart.Load(bytes.NewReader(pack(files)))
	if err != nil {
		return err.Error()
	}
	o := chart.Options{Now: time.Unix(1_800_000_000, 0), StandIns: !strings.Contains(template, "bcrypt")}
	if _, err = c.Render(t.Context(), o); err != nil {
		return err.Error()
	}
	return ""
}

// raceDetector reports whether the test was built with it, which takes a multiple of the time and the memory.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// mostMemory is the most that the process has had in memory, in KiB.
func mostMemory() (size int) {
	data, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscan(rest, &size)
		}
	}
	return size
}
