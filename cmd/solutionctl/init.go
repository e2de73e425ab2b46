package main

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

//go:embed all:testdata/init
var projectTemplate embed.FS

// initFlags are the flags of `solutionctl init`.
type initFlags struct {
	from, images, values []string
	mirrors, plainHTTP   []string
	operator             bool
}

func newInitCommand(a *app) *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Create a project that builds",
		Long: `Make a new project in a directory. The Solution is named after the directory. Existing files are not overwritten.

With --from, the project is made of what you have, and each SOURCE becomes a component. The content of a SOURCE decides what it is:

  a chart           a directory with Chart.yaml, a .tgz, or oci://HOST/CHART:VERSION
  manifests         a file or a directory with Kubernetes objects
  a kustomization   a directory with kustomization.yaml
  an operator       a project of kubebuilder or the Operator SDK
  a compose file    compose.yaml, or the directory that it is in

Every image that they start is found by rendering them and written to solution.yaml. It comes from its registry, or from the files
that --images names.

Without --from, it is the project of an operator: solution.yaml, a CustomResourceDefinition, the operator's role and a placeholder
for its image.`,
		Example: `  solutionctl init shop --from ./chart
  solutionctl init shop --from compose.yaml --images images.tar
  solutionctl init acme-db`,
		Args: cli.ExactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.from) > 0 {
				return a.initFrom(cmd.Context(), args[0], f)
			}
			if len(f.images)+len(f.values) > 0 {
				return report.Errorf(report.Usage, "--images and --values are about what --from names").WithHint("add --from SOURCE")
			}
			return a.initOperator(args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.from, "from", nil, "make a component of this `SOURCE`; may be repeated")
	flags.StringArrayVar(&f.images, "images", nil, "take images from this file of \"docker save\" or OCI image layout: `FILE` or oci:DIR; may be repeated")
	flags.StringArrayVar(&f.values, "values", nil, "values of a chart: `[COMPONENT=]FILE`; may be repeated")
	flags.StringArrayVar(&f.mirrors, "mirror", nil, "try another registry first: `REGISTRY=ENDPOINT`; may be repeated")
	flags.StringArrayVar(&f.plainHTTP, "plain-http", nil, "ask this registry without TLS: `HOST[:PORT]`; may be repeated")
	flags.BoolVar(&f.operator, "operator", false, "add an operator to write: a CustomResourceDefinition, a role, a placeholder for its image")
	return cmd
}

// initOperator makes the project of an operator.
func (a *app) initOperator(dir string) error {
	name, err := solutionName(dir)
	if err != nil {
		return err
	}
	files, err := renderProject(name)
	if err != nil {
		return err
	}
	names, err := writeProject(dir, files)
	if err != nil {
		return err
	}
	return a.EmitResult(map[string]any{"directory": dir, "files": names}, func(w *console.Stream) {
		for _, file := range names {
			fmt.Fprintln(w, filepath.Join(dir, filepath.FromSlash(file)))
		}
		fmt.Fprintf(w, "\nNext: solutionctl build %s\n", report.ShellFile(dir))
	})
}

// writeProject writes the files of a new project and returns their names. After an error nothing of it is left.
func writeProject(dir string, files []projectFile) (_ []string, err error) {
	for _, file := range files {
		if !filepath.IsLocal(filepath.FromSlash(file.name)) {
			return nil, report.Errorf(report.Invalid, "file %s would be outside of the project", file.name)
		}
		if _, missing := os.Lstat(filepath.Join(dir, file.name)); missing == nil {
			return nil, report.Errorf(report.Usage, "%s is there already", filepath.Join(dir, file.name)).
				WithHint("name a directory without a project")
		}
	}
	var names, made []string
	defer func() {
		if err != nil {
			err = errors.Join(err, removeMade(made))
		}
	}()
	for _, file := range files {
		target := filepath.Join(dir, filepath.FromSlash(file.name))
		made = append(made, missingDirectories(filepath.Dir(target))...)
		if err = durable.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return nil, err
		}
		if err = durable.WriteFile(target, file.data, 0o644); err != nil {
			return nil, err
		}
		names, made = append(names, file.name), append(made, target)
	}
	project, err := build.Load(dir, build.Overrides{})
	if err != nil {
		return nil, fmt.Errorf("the new project is not valid: %w", err)
	}
	return names, project.Close()
}

// missingDirectories returns the directories that have to be made for dir to exist, each below the one before it.
func missingDirectories(dir string) []string {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return append(missingDirectories(filepath.Dir(dir)), dir)
}

// removeMade removes files and directories, the last one first.
func removeMade(made []string) error {
	var failures []error
	for _, name := range slices.Backward(made) {
		failures = append(failures, durable.Remove(name))
	}
	return errors.Join(failures...)
}

type projectFile struct {
	name string
	data []byte
}

// solutionName is the name of the Solution in a directory: that of the directory.
func solutionName(dir string) (string, error) {
	if dir == "" {
		return "", report.Errorf(report.Usage, "the directory has no name").WithHint("name the directory of the new project, for example acme-db")
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := filepath.Base(absolute)
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(name, "-") != name || name == "" {
		return "", report.Errorf(report.Usage, "%q cannot be the name of a Solution", name).
			WithHint("name the directory with lower-case letters, digits and '-', for example acme-db")
	}
	if name[0] >= '0' && name[0] <= '9' {
		return "", report.Errorf(report.Usage, "%q cannot be the name of a Solution: Services and kinds begin with a letter", name).
			WithHint("name the directory with a letter first, for example acme-%s", name)
	}
	return name, nil
}

// renderProject returns the files of the template for an operator.
func renderProject(name string) ([]projectFile, error) {
	singular := strings.ReplaceAll(name, "-", "")
	replace := strings.NewReplacer("PROJECT", name, "KIND", kindOf(name), "RESOURCE", singular+"s", "SINGULAR", singular)
	template, err := fs.Sub(projectTemplate, "testdata/init")
	if err != nil {
		return nil, err
	}
	var files []projectFile
	err = fs.WalkDir(template, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(template, file)
		files = append(files, projectFile{replace.Replace(file), []byte(replace.Replace(string(data)))})
		return err
	})
	return append(files, placeholderImage(name+"-operator")...), err
}

// kindOf turns acme-db into AcmeDb.
func kindOf(name string) string {
	var kind strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if word != "" {
			kind.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return kind.String()
}

// placeholderImage is an OCI image layout with one image that has an entry point and nothing else.
func placeholderImage(entrypoint string) []projectFile {
	const dir = "images/placeholder"
	var files []projectFile
	add := func(name string, value any) (digest string, size int) {
		data, err := json.Marshal(value)
		if err != nil {
			panic(errors.Join(errors.New("encode the placeholder image"), err))
		}
		sum := sha256.Sum256(data)
		name = cmp.Or(name, path.Join("blobs", "sha256", hex.EncodeToString(sum[:])))
		files = append(files, projectFile{path.Join(dir, name), data})
		return "sha256:" + hex.EncodeToString(sum[:]), len(data)
	}
	type object = map[string]any
	add("oci-layout", object{"imageLayoutVersion": "1.0.0"})
	digest, size := add("", object{
		"os": "linux", "architecture": "amd64",
		"config": object{"Entrypoint": []string{"/" + entrypoint}, "Env": []string{"PATH=/"}}, // it is started by its name alone
		"rootfs": object{"type": "layers", "diff_ids": []string{}},
	})
	digest, size = add("", object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []object{},
		"config": object{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest, "size": size},
	})
	add("index.json", object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []object{{
		"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": size,
		"annotations": object{"org.opencontainers.image.ref.name": "operator"},
	}}})
	return files
}
