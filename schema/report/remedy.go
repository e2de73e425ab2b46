package report

import (
	"slices"
	"strings"
)

// Remedy resolves a failure, or accepts a refused risk, as data: the command line shows a command to type, other front ends
// show a button. In the text of a hint it is an argument of [Error.WithHint].
type Remedy struct {
	// Verb is the command that helps, without the name of the program: "deploy activate". "" is the command that failed, given
	// once more.
	Verb string `json:"verb,omitempty"`
	// Arguments are the arguments of the verb. The user replaces one in capitals, such as ENVIRONMENT.
	Arguments []string `json:"arguments,omitempty"`
	Options   []Option `json:"options,omitempty"`
}

// Option is an option of a command.
type Option struct {
	Name  string `json:"name"`            // without dashes
	Value string `json:"value,omitempty"` // "" for an option without a value
	// Objects lists what the option accepts, one line each.
	Objects []string `json:"objects,omitempty"`
}

// Run returns the remedy to run a verb.
func Run(verb string, arguments ...string) Remedy { return Remedy{Verb: verb, Arguments: arguments} }

// Accept returns the remedy to give the command that failed once more, with an option for each of the values.
func Accept(option string, values ...string) Remedy { return Remedy{}.With(option, values...) }

// With adds an option for each of the values, or without one.
func (r Remedy) With(option string, values ...string) Remedy {
	if len(values) == 0 {
		values = []string{""}
	}
	r.Options = slices.Clone(r.Options)
	for _, value := range values {
		r.Options = append(r.Options, Option{Name: option, Value: value})
	}
	return r
}

// In returns the remedy for one namespace of an environment; for "" it stays for all of them.
func (r Remedy) In(namespace string) Remedy {
	if namespace == "" {
		return r
	}
	return r.With("namespace", namespace)
}

// maxObjects bounds how many lines an option lists: enough to look through.
const maxObjects = 100

// About returns the remedy with the objects that its last option accepts.
func (r Remedy) About(objects ...string) Remedy {
	r.Options = slices.Clone(r.Options)
	r.Options[len(r.Options)-1].Objects = atMost(maxObjects, objects)
	return r
}

// and is a remedy that is also about what another one is about, which reads the same.
func (r Remedy) and(other Remedy) Remedy {
	r.Options = slices.Clone(r.Options)
	for i := range min(len(r.Options), len(other.Options)) {
		all := slices.Clip(r.Options[i].Objects)
		for _, object := range other.Options[i].Objects {
			if !slices.Contains(all, object) {
				all = append(all, object)
			}
		}
		r.Options[i].Objects = atMost(maxObjects, all)
	}
	return r
}

// IsZero reports whether the remedy is empty.
func (r Remedy) IsZero() bool { return r.Verb == "" && len(r.Options) == 0 }

// String is the remedy as it is typed: a command, or options to give in addition.
func (r Remedy) String() string {
	var words []string
	if r.Verb != "" {
		words = append(words, "solutionctl", r.Verb)
	}
	for _, argument := range r.Arguments {
		words = append(words, ShellWord(argument))
	}
	for i, o := range r.Options {
		switch {
		case i > 0 && o.Value != "" && r.Options[i-1].Name == o.Name:
			words[len(words)-1] += "," + ShellWord(o.Value)
		case o.Value != "":
			words = append(words, "--"+o.Name, ShellWord(o.Value))
		default:
			words = append(words, "--"+o.Name)
		}
	}
	return strings.Join(words, " ")
}

// Remedies are to be done one after the other.
type Remedies []Remedy

// String is how they are typed, each once.
func (list Remedies) String() string {
	var texts []string
	for _, r := range list {
		texts = append(texts, r.String())
	}
	return strings.Join(slices.Compact(texts), " && ")
}
