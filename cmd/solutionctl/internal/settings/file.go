package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema/report"
)

// maxFileSize bounds what is read of a configuration file.
const maxFileSize = 64 << 10

// file is a configuration file. The key of an entry is its path joined by dots; names of commands and flags have none.
type file map[string]entry

// entry is the value of one key: a scalar or a list of scalars.
type entry struct {
	position string // "config.yaml:3"
	values   []string
	list     bool
}

// lookup returns the entry of a flag of the command with the given path: the command's own, else the one for all
// commands that have such a flag.
func (f file) lookup(command []string, flag string) (entry, bool) {
	if e, ok := f[strings.Join(append(slices.Clone(command), flag), ".")]; ok {
		return e, true
	}
	e, ok := f[flag]
	return e, ok
}

// set gives the entry's value to a flag.
func (e entry) set(value pflag.Value) error {
	list, isList := value.(pflag.SliceValue)
	switch {
	case isList:
		return list.Replace(e.values)
	case e.list:
		return errors.New("want one value, not a list")
	default:
		return value.Set(e.values[0])
	}
}

// parser collects the entries of a file and everything that is wrong with it.
type parser struct {
	name     string
	file     file
	flags    map[string]bool // names of the flags of any command
	only     map[string]bool // names of those that count on the command line only
	problems []error
}

// read returns the content of a file, or a little more of it than is allowed.
func read(name string) (data []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFileSize+1))
	return data, errors.Join(err, f.Close())
}

func parse(name string, data []byte, root *cobra.Command) (file, error) {
	if len(data) > maxFileSize {
		return nil, report.Errorf(report.Invalid, "%s: larger than %d bytes", name, maxFileSize)
	}
	p := &parser{name: name, file: file{}, flags: map[string]bool{}, only: map[string]bool{}}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, another yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return p.file, nil
	case err != nil:
		return nil, report.Errorf(report.Invalid, "%s: %w", name, err)
	}
	if err := decoder.Decode(&another); !errors.Is(err, io.EOF) {
		return nil, report.Errorf(report.Invalid, "%s: want one YAML document, found more", name)
	}
	for cmd := range tree(root) {
		for flag := range ownFlags(cmd) {
			p.flags[flag.Name] = flag.Name != FileFlag
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if isCommandLineOnly(flag) {
				p.only[flag.Name] = true
			}
		})
	}
	p.section(document.Content[0], root)
	if len(p.problems) > 0 {
		return nil, report.Errorf(report.Invalid, "%w", errors.Join(p.problems...)).
			WithHint("'solutionctl config' without this file (SOLUTIONCTL_CONFIG=/dev/null) lists every key")
	}
	return p.file, nil
}

// section reads the settings of one command and those of the commands below it.
func (p *parser) section(node *yaml.Node, cmd *cobra.Command) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		p.problem(node, "want a mapping of settings")
		return
	}
	seen := map[string]bool{}
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		child := childNamed(cmd, key.Value)
		switch {
		case seen[key.Value]:
			p.problem(key, "%s: given twice", key.Value)
		case value.Kind == yaml.MappingNode && child == nil:
			p.problem(key, "%s: no such command", key.Value)
		case value.Kind != yaml.MappingNode && p.knows(cmd, key.Value):
			p.entry(cmd, key, value)
		case child != nil && (value.Kind == yaml.MappingNode || isNull(value)):
			p.section(value, child)
		case p.only[key.Value]:
			p.problem(key, "%s: not a setting: --%[1]s counts on the command line only", key.Value)
		default:
			p.problem(key, "%s: no such setting", key.Value)
		}
		seen[key.Value] = true
	}
}

// knows reports whether a key may stand in cmd's section: the section of the root may set the flags of all commands.
func (p *parser) knows(cmd *cobra.Command, key string) bool {
	if !cmd.HasParent() {
		return p.flags[key]
	}
	return slices.ContainsFunc(slices.Collect(ownFlags(cmd)), func(flag *pflag.Flag) bool { return flag.Name == key })
}

func (p *parser) entry(cmd *cobra.Command, key, value *yaml.Node) {
	e := entry{position: fmt.Sprintf("%s:%d", p.name, key.Line)}
	scalars := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		e.list = true
		scalars = value.Content
	}
	for _, scalar := range scalars {
		if scalar.Kind != yaml.ScalarNode || isNull(scalar) {
			p.problem(scalar, "%s: want a value or a list of values", key.Value)
			return
		}
		e.values = append(e.values, scalar.Value)
	}
	p.file[strings.Join(append(path(cmd), key.Value), ".")] = e
}

func (p *parser) problem(node *yaml.Node, format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s:%d:%d: %s", p.name, node.Line, node.Column, fmt.Sprintf(format, args...)))
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

func childNamed(cmd *cobra.Command, name string) *cobra.Command {
	for _, child := range cmd.Commands() {
		if child.Name() == name {
			return child
		}
	}
	return nil
}
