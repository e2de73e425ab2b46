package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// watchStatus shows the status and each change of it until ctx is done: on a terminal as a table in the place of the one before, else as a
// line for what has changed, or as a JSON document on a line.
func (c *statusFlags) watchStatus(ctx context.Context) error {
	d, err := c.deployer()
	if err != nil {
		return err
	}
	c.Sink.Close() // progress would be between the lines
	show := c.statusLines()
	if c.Out.TTY && !c.ForMachines() {
		show = c.statusScreen()
	}
	return d.Survey.WatchStatus(ctx, survey.StatusOptions{Drift: c.drift}, show)
}

// statusScreen draws each status over the one before. While the API server cannot be reached, the last one stays with a note.
func (c *statusFlags) statusScreen() func(*schema.Status, error) error {
	screen := console.NewScreen(c.Out)
	last, at := &schema.Status{}, time.Time{}
	return func(s *schema.Status, failure error) error {
		if failure == nil {
			last, at = s, c.Now()
		}
		return screen.Draw(func(w *console.Stream) {
			head := "at " + at.UTC().Format(time.RFC3339) + "; Ctrl-C ends"
			fmt.Fprintln(w, w.Paint(console.Faint, head))
			if failure != nil {
				fmt.Fprintf(w, "%s %s\n", w.Paint(console.Yellow, "not newer, because of:"), console.Line(failure.Error()))
			}
			fmt.Fprintln(w)
			printStatus(w, last)
		})
	}
}

// statusLines prints what has changed, with the time.
func (c *statusFlags) statusLines() func(*schema.Status, error) error {
	shown := map[string]string{}
	return func(s *schema.Status, failure error) error {
		switch {
		case failure != nil:
			_, err := fmt.Fprintf(c.Err.Text(), "%s %s\n", c.Err.Paint(console.Yellow, "note:"), console.Line(failure.Error()))
			return err
		case c.ForMachines():
			return json.NewEncoder(c.Out).Encode(s)
		}
		now := c.Now().UTC().Format(time.RFC3339)
		return c.Out.Print(func(w *console.Stream) {
			print := func(name, text string) { fmt.Fprintf(w, "%s  %s  %s\n", now, console.Line(name), console.Line(text)) }
			current := map[string]string{}
			for _, line := range statusTexts(s) {
				current[line.name] = line.text
				if shown[line.name] != line.text {
					print(line.name, line.text)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(shown)) {
				if _, there := current[name]; !there {
					print(name, "is gone")
				}
			}
			shown = current
		})
	}
}

// namedText describes a deployment, a namespace or the problems in one line.
type namedText struct{ name, text string }

// statusTexts returns a line for each deployment, each namespace and each problem.
func statusTexts(s *schema.Status) (lines []namedText) {
	for i := range s.Solutions {
		solution := &s.Solutions[i]
		text := "active: " + orDash(solution.Active)
		if solution.Deployment != nil {
			text += ", " + healthText(solution.Deployment)
		}
		lines = append(lines, namedText{solution.Name, text})
	}
	for i := range s.Environments {
		e := &s.Environments[i]
		for j := range e.Namespaces {
			n := &e.Namespaces[j]
			state := strings.Join(n.Problems, "; ")
			if n.Terminating {
				state = strings.TrimSuffix("being deleted; "+state, "; ")
			}
			if state != "" {
				lines = append(lines, namedText{"namespace " + n.Name, state})
			}
			for k := range n.Deployments {
				deployment := &n.Deployments[k]
				lines = append(lines, namedText{n.Name + "/" + deployment.Solution, versionText(*deployment) + ", " + healthText(deployment)})
			}
		}
	}
	if len(s.Problems) > 0 {
		lines = append(lines, namedText{"problems", strings.Join(s.Problems, "; ")})
	}
	return lines
}

func healthText(d *schema.DeploymentStatus) string {
	text := string(d.Health)
	if d.Objects > 0 {
		text += fmt.Sprintf(" (%d of %s ready)", d.Ready, report.Count(d.Objects, "object"))
	}
	if len(d.Reasons) > 0 {
		text += ": " + strings.Join(schema.Sentences(d.Reasons), "; ")
	}
	return text
}
