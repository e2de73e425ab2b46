package settings_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
	"github.com/solutionctl/solutionctl/schema/report"
)

// newTree returns a small program: two commands that share the name of a flag, one of them in a group.
func newTree() *cobra.Command {
	root := &cobra.Command{Use: "solutionctl"}
	root.PersistentFlags().String("config", "", "")
	root.PersistentFlags().Bool("quiet", false, "")
	root.PersistentFlags().String("output", "text", "")
	build := &cobra.Command{Use: "build", Run: func(*cobra.Command, []string) {}}
	build.Flags().StringSlice("platform", []string{"linux/amd64"}, "")
	build.Flags().Int("jobs", 2, "")
	env := &cobra.Command{Use: "env"}
	env.PersistentFlags().String("name", "", "")
	create := &cobra.Command{Use: "create", Run: func(*cobra.Command, []string) {}}
	create.Flags().Int("jobs", 1, "")
	env.AddCommand(create)
	root.AddCommand(build, env)
	return root
}

// apply runs "solutionctl args…" up to the point where a command would start and returns the settings of that command.
func apply(t *testing.T, env map[string]string, config string, args ...string) (map[string]string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if config != "" {
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := newTree()
	cmd, rest, err := root.Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	s := settings.New(root, nil, func(name string) string { return env[name] }, file)
	if err = s.Apply(cmd); err != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(err.Error(), file, "config.yaml"))
	}
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, setting := range list {
		got[setting.Key] = fmt.Sprintf("%s (%s)", setting.Value, filepath.Base(setting.Origin))
	}
	return got, nil
}

func TestPrecedence(t *testing.T) {
	config := "output: json\njobs: 5\nbuild:\n  jobs: 6\n  platform: [linux/arm64, linux/arm/v7]\nenv: {name: blue}\n"
	for _, test := range []struct {
		name   string
		env    map[string]string
		config string
		args   []string
		want   map[string]string
	}{
		{name: "defaults", args: []string{"build"}, want: map[string]string{
			"output": "text (default)", "build.jobs": "2 (default)", "build.platform": "[linux/amd64] (default)",
		}},
		{name: "file", config: config, args: []string{"build"}, want: map[string]string{
			"output":          "json (config.yaml:1)",
			"build.jobs":      "6 (config.yaml:4)",
			"build.platform":  "[linux/arm64,linux/arm/v7] (config.yaml:5)",
			"env.name":        "blue (config.yaml:6)",
			"env.create.jobs": "5 (config.yaml:2)",
		}},
		{
			name: "environment before file", config: config, args: []string{"build"},
			env: map[string]string{"SOLUTIONCTL_OUTPUT": "text", "SOLUTIONCTL_JOBS": "7", "SOLUTIONCTL_PLATFORM": "a,b"},
			want: map[string]string{
				"output":          "text (SOLUTIONCTL_OUTPUT)",
				"build.jobs":      "7 (SOLUTIONCTL_JOBS)",
				"env.create.jobs": "7 (SOLUTIONCTL_JOBS)",
				"build.platform":  "[a,b] (SOLUTIONCTL_PLATFORM)",
			},
		},
		{
			name: "the more special variable wins", args: []string{"build"},
			env:  map[string]string{"SOLUTIONCTL_BUILD_JOBS": "8", "SOLUTIONCTL_JOBS": "7"},
			want: map[string]string{"build.jobs": "8 (SOLUTIONCTL_BUILD_JOBS)", "env.create.jobs": "7 (SOLUTIONCTL_JOBS)"},
		},
		{
			name: "flag before everything", config: config, args: []string{"build", "--jobs=9", "--output=yaml"},
			env:  map[string]string{"SOLUTIONCTL_OUTPUT": "text", "SOLUTIONCTL_BUILD_JOBS": "8"},
			want: map[string]string{"output": "yaml (--output)", "build.jobs": "9 (--jobs)"},
		},
		{
			name: "an empty variable is unset, a foreign one is ignored", args: []string{"build"},
			env:  map[string]string{"SOLUTIONCTL_OUTPUT": "", "SOLUTIONCTL_SERVICE_HOST": "10.0.0.1"},
			want: map[string]string{"output": "text (default)"},
		},
		{name: "comments only", config: "# nothing\n", args: []string{"build"}, want: map[string]string{"quiet": "false (default)"}},
		{name: "empty section", config: "build:\nquiet: true\n", args: []string{"build"}, want: map[string]string{"quiet": "true (config.yaml:2)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := apply(t, test.env, test.config, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			for key := range got {
				if _, ok := test.want[key]; !ok {
					delete(got, key)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, config string
		env          map[string]string
		want         string
	}{
		{name: "unknown key", config: "progres: plain\n", want: "config.yaml:1:1: progres: no such setting"},
		{name: "every problem at once", config: "a: 1\nb: 2\n", want: "config.yaml:1:1: a: no such setting\nconfig.yaml:2:1: b: no such setting"},
		{name: "unknown command", config: "biuld: {jobs: 1}\n", want: "config.yaml:1:1: biuld: no such command"},
		{name: "setting of another command", config: "env: {platform: x}\n", want: "config.yaml:1:7: platform: no such setting"},
		{name: "global setting in a section", config: "build: {quiet: true}\n", want: "config.yaml:1:9: quiet: no such setting"},
		{name: "the file in the file", config: "config: other.yaml\n", want: "config.yaml:1:1: config: no such setting"},
		{name: "help", config: "help: true\n", want: "config.yaml:1:1: help: no such setting"},
		{name: "twice", config: "quiet: true\nquiet: false\n", want: "config.yaml:2:1: quiet: given twice"},
		{name: "not a mapping", config: "- quiet\n", want: "config.yaml:1:1: want a mapping of settings"},
		{name: "value missing", config: "output:\n", want: "config.yaml:1:8: output: want a value or a list of values"},
		{name: "list of lists", config: "build: {platform: [[a]]}\n", want: "config.yaml:1:20: platform: want a value or a list of values"},
		{name: "alias", config: "output: &a json\nbuild: {platform: *a}\n", want: "config.yaml:2:19: platform: want a value or a list of values"},
		{name: "list for one value", config: "build:\n  jobs: [1, 2]\n", want: "config.yaml:2: jobs: want one value, not a list"},
		{name: "wrong type", config: "jobs: many\n", want: `config.yaml:1: jobs: strconv.ParseInt: parsing "many": invalid syntax`},
		{name: "two documents", config: "quiet: true\n---\n", want: "config.yaml: want one YAML document, found more"},
		{name: "too large", config: strings.Repeat("#", 64<<10+1), want: "config.yaml: larger than 65536 bytes"},
		{
			name: "environment of the wrong type", env: map[string]string{"SOLUTIONCTL_JOBS": "x"},
			want: `environment variable SOLUTIONCTL_JOBS: "x": strconv.ParseInt: parsing "x": invalid syntax`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := apply(t, test.env, test.config, "build")
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestNamedFileMustExist(t *testing.T) {
	root := newTree()
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	getenv := func(name string) string { return map[string]string{"SOLUTIONCTL_CONFIG": missing}[name] }
	err := settings.New(root, nil, getenv, "/nonexistent").Apply(root)
	if report.CodeOf(err) != report.Failure || !strings.Contains(err.Error(), missing) {
		t.Errorf("Apply = %v", err)
	}
}

// FuzzFile checks that no file crashes the parser and that every value of an accepted file has its position.
func FuzzFile(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := settings.New(newTree(), nil, func(string) string { return "" }, file).List()
		if err != nil {
			return
		}
		for _, setting := range list {
			if setting.Source == settings.File && !strings.HasPrefix(setting.Origin, file+":") {
				t.Errorf("%+v has no position in %q", setting, bytes.TrimSpace(data))
			}
		}
	})
}

func ExampleSettings_Apply() {
	root := &cobra.Command{Use: "solutionctl"}
	output := root.PersistentFlags().String("output", "text", "format of the result")
	environment := map[string]string{"SOLUTIONCTL_OUTPUT": "json"}
	getenv := func(name string) string { return environment[name] }
	if err := settings.New(root, nil, getenv, "/nonexistent").Apply(root); err != nil {
		fmt.Println(err)
	}
	fmt.Println(*output)
	// Output: json
}

// TestCommandLineOnly leaves a flag to the command line, while another command has a setting of the same name.
func TestCommandLineOnly(t *testing.T) {
	root := newTree()
	build, _, _ := root.Find([]string{"build"})
	settings.CommandLineOnly(build.Flags(), "jobs")
	env := map[string]string{"SOLUTIONCTL_JOBS": "7", "SOLUTIONCTL_BUILD_JOBS": "8"}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("jobs: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings.New(root, nil, func(name string) string { return env[name] }, file)
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := build.Flags().GetInt("jobs"); got != 2 {
		t.Errorf("build --jobs is %d", got)
	}
	for _, setting := range list {
		if setting.Key == "build.jobs" {
			t.Errorf("a setting: %+v", setting)
		}
		if setting.Key == "env.create.jobs" && setting.Value != "7" {
			t.Errorf("the other command: %+v", setting)
		}
	}
	if err := os.WriteFile(file, []byte("build: {jobs: 9}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := settings.New(root, nil, func(string) string { return "" }, file).Apply(build); report.CodeOf(err) != report.Invalid {
		t.Errorf("the file may set it: %v", err)
	}
}
