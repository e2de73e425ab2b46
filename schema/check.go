package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The checks below work on the values of a document, not on its type, so that they run, and all problems come out
// together, when other parts of the document do not decode.

// fail records an error at the value of path.
func (c *checker) fail(path []string, hint, format string, args ...any) {
	c.add(report.SeverityError, "bad-value", path, hint, format, args...)
}

// failWith records an error together with the hints that it carries.
func (c *checker) failWith(path []string, err error) {
	c.fail(path, strings.Join(report.Hints(err), "; "), "%s", err.Error())
}

// each calls f for every value that pattern selects: a dotted path of keys and indices, in which * stands for all of
// them. It calls in order, and not for values that are known to be wrong.
func (c *checker) each(pattern string, f func(path []string, value any)) {
	c.walk(c.pruned, strings.Split(pattern, "."), nil, f)
}

func (c *checker) walk(value any, pattern, path []string, f func([]string, any)) {
	if len(pattern) == 0 {
		if !c.reported(path) {
			f(path, value)
		}
		return
	}
	step := func(key string, value any) { c.walk(value, pattern[1:], append(slices.Clone(path), key), f) }
	switch value := value.(type) {
	case map[string]any:
		if pattern[0] != "*" {
			if one, has := value[pattern[0]]; has {
				step(pattern[0], one)
			}
			return
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			step(key, value[key])
		}
	case []any:
		if pattern[0] != "*" {
			if i, err := strconv.Atoi(pattern[0]); err == nil && i >= 0 && i < len(value) {
				step(pattern[0], value[i])
			}
			return
		}
		for i, item := range value {
			step(strconv.Itoa(i), item)
		}
	}
}

// eachString is each for the strings among the values.
func (c *checker) eachString(pattern string, f func(path []string, s string)) {
	c.each(pattern, func(path []string, value any) {
		if s, ok := value.(string); ok {
			f(path, s)
		}
	})
}

// text returns the string at a path without *, "" when there is none or when it is known to be wrong.
func (c *checker) text(pattern string) string {
	var text string
	c.eachString(pattern, func(_ []string, s string) { text = s })
	return text
}

// lookup returns the value at a path of keys, nil when there is none.
func lookup(value any, path ...string) any {
	for _, step := range path {
		object, _ := value.(map[string]any)
		value = object[step]
	}
	return value
}

// part decodes the value at a path without *; it reports false when there is none or something in it is wrong.
func part[T any](c *checker, pattern string) (value T, ok bool) {
	c.each(pattern, func(_ []string, found any) {
		data, err := json.Marshal(found)
		ok = err == nil && json.Unmarshal(data, &value) == nil
	})
	return value, ok
}

// unique reports the values that pattern selects and that name the same thing as an earlier one.
func (c *checker) unique(pattern, what string) {
	seen := map[string]bool{}
	c.eachString(pattern, func(path []string, s string) {
		if seen[s] {
			c.fail(path, "keep one of them", "%s %q is there already", what, s)
		}
		seen[s] = true
	})
}

func checkSolution(c *checker) {
	c.checkCommon()
	c.checkAnnotations()
	listed := map[string]bool{}
	c.eachString("spec.images.*", func(_ []string, ref string) { listed[ref] = true })
	c.each("spec.imageOrigins.*", func(path []string, _ any) {
		if len(listed) > 0 && !listed[path[2]] {
			c.addKey(report.SeverityWarning, "unknown-image", path, "", "spec.images does not list this image")
		}
	})
}

// checkCommon judges what manifest.yaml and solution.yaml have in common.
func (c *checker) checkCommon() {
	c.checkReserved()
	c.checkVersions()
	for _, pattern := range []string{"spec.kubernetesVersion", "spec.dependsOn.*.version"} {
		c.eachString(pattern, func(path []string, s string) {
			if _, err := ParseRange(s); err != nil {
				c.failWith(path, err)
			}
		})
	}
	c.eachString("spec.dependsOn.*.solution", func(path []string, s string) {
		if s == c.text("metadata.name") {
			c.fail(path, "", "a Solution cannot depend on itself")
		}
	})
	c.unique("spec.dependsOn.*.solution", "a dependency on")
	c.unique("spec.operator.requiresCRDs.*.name", "a requirement of")
	c.checkComponents()
}

// maxID is the greatest length of the id of an archive: the pod that serves it in MetalK8s is registry-<id>, and has it in a label.
const maxID = 63 - len("registry-")

// belongsToMetalK8s reports whether MetalK8s takes a Solution of this name for one of its own archives, and skips it.
func belongsToMetalK8s(name string) bool { return strings.HasPrefix(name, "metalk8s-") }

func (c *checker) checkVersions() {
	version, err := ParseVersion(c.text("spec.version"))
	if text := c.text("spec.version"); text != "" && err != nil {
		c.failWith([]string{"spec", "version"}, err)
	}
	name := c.text("metadata.name")
	switch id := name + "-" + version.String(); {
	case name == "" || version.IsZero():
	case !ValidImageName(id):
		c.fail([]string{"spec", "version"}, "let each part of the pre-release start and end with a letter or digit",
			"archive id %q is not a repository name", id)
	case len(id) > maxID:
		c.fail([]string{"metadata", "name"}, "choose a shorter name, or a shorter version",
			"archive id %q has %d characters, more than the %d with which MetalK8s can serve its images", id, len(id), maxID)
	}
	c.eachString("spec.supportedUntil", func(path []string, s string) {
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			c.fail(path, "", "%q is not a day of the calendar", s)
		}
	})
	c.eachString("spec.minUpgradeFrom", func(path []string, s string) {
		minimum, err := ParseVersion(s)
		switch {
		case err != nil:
			c.failWith(path, err)
		case !version.IsZero() && minimum.Compare(version) > 0:
			c.fail(path, "", "%s is higher than version %s itself", s, version)
		}
	})
}

// checkAnnotations compares the two places of annotations.
func (c *checker) checkAnnotations() {
	c.eachString("annotations.*", func(path []string, outer string) {
		key := path[1]
		inner, both := "", false
		c.eachString("metadata.annotations.*", func(p []string, s string) {
			if p[2] == key {
				inner, both = s, true
			}
		})
		switch {
		case !both && strings.HasPrefix(key, AnnotationPrefix):
			c.addKey(report.SeverityNote, "older-annotation", path, "write it to metadata.annotations as well",
				"only MetalK8s looks for annotations here")
		case both && inner != outer:
			c.addKey(report.SeverityWarning, "different-annotation", path, "write the same value to both places",
				"MetalK8s reads %q here, everything else %q in metadata", outer, inner)
		}
	})
}

func checkSolutionsConfiguration(c *checker) {
	c.checkOlderForm()
	c.unique("solutions.*.name", "Solution")
	seen := map[string]bool{}
	for _, pattern := range []string{"archives.*", "solutions.*.archives.*"} {
		c.eachString(pattern, func(path []string, s string) {
			if !strings.HasPrefix(s, "/") {
				c.add(report.SeverityWarning, "relative-path", path, "write an absolute path", "%q is not an absolute path", s)
			}
			if seen[s] {
				c.add(report.SeverityWarning, "duplicate-archive", path, "keep one of them", "archive %q is there already", s)
			}
			seen[s] = true
		})
	}
	c.eachString("active.*", func(path []string, s string) {
		if belongsToMetalK8s(path[1]) {
			c.addKey(report.SeverityError, "bad-key", path, "remove it", "names that start with metalk8s- belong to MetalK8s, not to Solutions")
		}
		if _, err := ParseVersion(s); err != nil && s != ActiveLatest {
			c.add(report.SeverityWarning, "bad-version", path, strings.Join(report.Hints(err), "; "), "%s", err.Error())
		}
	})
}

// checkOlderForm reports what MetalK8s refuses and mixtures of the two forms.
func (c *checker) checkOlderForm() {
	const hint = "the next change that is made with solutionctl converts the file"
	if c.text("apiVersion") == OlderAPIVersion {
		c.add(report.SeverityWarning, "older-form", []string{"apiVersion"}, hint, "MetalK8s refuses %s; it reads %s", OlderAPIVersion, APIVersion)
	}
	object, _ := c.pruned.(map[string]any)
	if object["solutions"] == nil {
		return
	}
	c.addKey(report.SeverityWarning, "older-form", []string{"solutions"}, hint, "MetalK8s does not read this form; it reads archives and active")
	for _, key := range []string{"archives", "active"} {
		if object[key] != nil {
			c.addKey(report.SeverityError, "mixed-forms", []string{key}, "keep archives and active, or solutions", "stands beside solutions, which is the older form")
		}
	}
}

func checkOperatorConfig(c *checker) {
	c.each("repositories.*", func(path []string, _ any) {
		if _, err := ParseVersion(path[1]); err != nil {
			c.addKey(report.SeverityError, "bad-key", path, strings.Join(report.Hints(err), "; "), "%s", err.Error())
		}
	})
}

func checkEnvironmentConfiguration(c *checker) { c.checkEnvironment("spec") }

// checkEnvironment judges what an environment is to have.
func (c *checker) checkEnvironment(at string) {
	c.unique(at+".solutions.*.name", "Solution")
	c.eachString(at+".name", func(path []string, name string) {
		if slices.Contains(reservedNamespaces, name) {
			c.fail(path, "choose another one", "namespace %s holds what is recorded of Solutions", name)
		} else if strings.HasPrefix(name, "kube-") || name == "default" {
			c.fail(path, "choose another one", "namespace %s is one of Kubernetes' own", name)
		}
	})
	c.checkAcceptance(at + ".solutions.*.accept")
}

// checkAcceptance reports powers and hazards that do not exist: an approval with a misspelt name approves of nothing.
func (c *checker) checkAcceptance(at string) {
	var powers []string
	for _, name := range PowerNames() {
		powers = append(powers, string(name))
	}
	c.checkName(at+".powers.*", "power", powers)
	c.checkName(at+".hazards.*", "hazard", HazardNames())
}

// checkName reports texts whose name, up to a colon, is not a known one.
func (c *checker) checkName(pattern, what string, known []string) {
	c.eachString(pattern, func(path []string, s string) {
		name, _, _ := strings.Cut(s, ":")
		if slices.Contains(known, name) {
			return
		}
		hint := didYouMean(name, known, fmt.Sprintf("the %ss are %s", what, strings.Join(known, ", ")))
		c.fail(path, hint, "there is no %s %q", what, name)
	})
}

func checkLoaderConfiguration(c *checker) {
	c.unique("spec.environments.*.name", "environment")
	list, _ := lookup(c.pruned, "spec", "environments").([]any)
	for i := range list {
		c.checkEnvironment("spec.environments." + strconv.Itoa(i))
	}
	for pattern, most := range map[string]time.Duration{"spec.timeout": maxLoaderTimeout, "spec.job.ttl": maxLoaderTTL} {
		c.checkDuration(pattern)
		c.eachString(pattern, func(path []string, s string) {
			if d, err := time.ParseDuration(s); err == nil && d > most {
				c.fail(path, "", "%s is longer than %dh", s, int(most.Hours()))
			}
		})
	}
	c.eachString("spec.repair.schedule", func(path []string, s string) {
		if err := checkSchedule(s); err != nil {
			c.fail(path, "write minute, hour, day of the month, month and day of the week, such as */30 * * * *", "%v", err)
		}
	})
	c.eachString("spec.repair.timeZone", func(path []string, s string) {
		if _, err := time.LoadLocation(s); err != nil || strings.EqualFold(s, "Local") { // as the API server
			c.fail(path, "write it as Europe/Paris or Etc/UTC", "there is no time zone %q", s)
		}
	})
	c.checkTolerations("spec.job.tolerations")
}

// What a configuration of the loader may say at most: a run that takes longer hangs.
const (
	maxLoaderTimeout = 7 * 24 * time.Hour
	maxLoaderTTL     = 365 * 24 * time.Hour
)

// checkTolerations judges tolerations as Kubernetes does.
func (c *checker) checkTolerations(at string) {
	c.each(at+".*", func(path []string, value any) {
		toleration, _ := value.(map[string]any)
		text := func(key string) string {
			s, _ := toleration[key].(string)
			return s
		}
		key, exists := text("key"), text("operator") == "Exists"
		switch {
		case exists && text("value") != "":
			c.fail(append(path, "value"), "leave it out, or write operator: Equal", "operator Exists asks for no value")
		case key == "" && !exists:
			c.fail(path, "name the taint with key, or write operator: Exists for all of them", "the toleration has neither a key nor operator Exists")
		case key != "" && !isTaintKey(key):
			c.fail(append(path, "key"), "", "%q is not the key of a taint, such as node-role.kubernetes.io/control-plane", key)
		}
	})
}

// isTaintKey reports whether text has the form of a label key.
func isTaintKey(key string) bool {
	prefix, name, qualified := strings.Cut(key, "/")
	if !qualified {
		prefix, name = "", key
	}
	fits := labelName.MatchString(name)
	return fits && (!qualified || labelPrefix.MatchString(prefix))
}

var (
	// labelName matches the key of a label or an annotation after its slash, labelPrefix matches it before: a name of the DNS.
	labelName   = lazyregexp.New(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	labelPrefix = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// checkDuration judges the durations that pattern selects.
func (c *checker) checkDuration(pattern string) {
	c.eachString(pattern, func(path []string, s string) {
		if d, err := time.ParseDuration(s); err != nil || d <= 0 {
			c.fail(path, "write it as 90s or 10m", "%q is not a duration above zero", s)
		}
	})
}

// checkYAML11 warns of strings that MetalK8s, whose YAML reader follows YAML 1.1, takes for something else.
func (c *checker) checkYAML11() {
	var walk func(node *yaml.Node, path []string)
	scalar := func(node *yaml.Node, path []string) {
		kind := yaml11(node.Value)
		if node.Style == 0 && kind != "" && (node.ShortTag() == "!!str" || node.ShortTag() == "!!timestamp") {
			c.addAt(node.Line, node.Column, report.SeverityWarning, "yaml-1.1", path,
				fmt.Sprintf("write %q in quotes", node.Value), "MetalK8s reads %s as %s", node.Value, kind)
		}
	}
	walk = func(node *yaml.Node, path []string) {
		switch node.Kind {
		case yaml.ScalarNode:
			scalar(node, path)
		case yaml.SequenceNode:
			for i, item := range node.Content {
				walk(item, append(path, strconv.Itoa(i)))
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				at := append(path, node.Content[i].Value)
				scalar(node.Content[i], at)
				walk(node.Content[i+1], at)
			}
		}
	}
	walk(c.doc.root(), nil)
}
