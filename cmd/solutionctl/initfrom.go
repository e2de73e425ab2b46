package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/scaffold"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// initResult describes the project that `solutionctl init --from` made.
type initResult struct {
	Directory  string               `json:"directory"`
	Files      []string             `json:"files"`
	Components []scaffold.Component `json:"components"`
	Images     []string             `json:"images"`
	Remarks    []string             `json:"remarks"`
	Errors     int                  `json:"errors"` // that lint finds
	Warnings   int                  `json:"warnings"`
}

// initFrom creates a project from existing charts and manifests.
func (a *app) initFrom(ctx context.Context, dir string, f initFlags) error {
	name, err := solutionName(dir)
	if err != nil {
		return err
	}
	options := scaffold.Options{Solution: name, Operator: f.operator}
	if options.Values, err = valuesFiles(f.values); err != nil {
		return err
	}
	resolver, err := a.localResolver(f)
	if err != nil {
		return err
	}
	defer resolver.Close() //nolint:errcheck // files that were only read
	if options.Images, err = availableImages(ctx, resolver, f.images, dir); err != nil {
		return err
	}
	sources := make([]scaffold.Source, len(f.from))
	for i, from := range f.from {
		if sources[i], err = openSource(ctx, resolver, from); err != nil {
			return err
		}
	}
	project, err := scaffold.New(ctx, options, sources)
	if err != nil {
		return err
	}
	files, err := filesOf(project, name, f.operator)
	if err != nil {
		return err
	}
	result := &initResult{Directory: dir, Components: project.Components, Images: project.Images, Remarks: project.Remarks}
	if result.Files, err = writeProject(dir, files); err != nil {
		return err
	}
	judged, err := lint.Judge(ctx, []string{dir}, lint.Request{})
	if err != nil {
		return err
	}
	result.Errors, result.Warnings = judged.Errors, judged.Warnings
	return a.EmitResult(result, result.print)
}

// filesOf are the files of a project, with those of the template for an operator.
func filesOf(project *scaffold.Project, name string, operator bool) ([]projectFile, error) {
	var files []projectFile
	for _, file := range project.Files {
		files = append(files, projectFile{file.Path, file.Data})
	}
	if !operator {
		return files, nil
	}
	template, err := renderProject(name)
	for _, file := range template {
		if file.name != "solution.yaml" {
			files = append(files, file)
		}
	}
	return files, err
}

func (r *initResult) print(w *console.Stream) {
	for _, c := range r.Components {
		detail := ""
		if c.Detail != "" {
			detail = " " + c.Detail
		}
		fmt.Fprintf(w, "found %s%s in %s: component %s, %s\n", c.Kind, detail, c.Source, c.Name, report.Count(c.Objects, "object"))
	}
	fmt.Fprintf(w, "found %s\n", report.Count(len(r.Images), "image"))
	for _, image := range r.Images {
		fmt.Fprintf(w, "  %s\n", image)
	}
	for _, remark := range r.Remarks {
		fmt.Fprintln(w, remark)
	}
	fmt.Fprintf(w, "wrote %s and %s beside it\n", filepath.Join(r.Directory, "solution.yaml"), report.Count(len(r.Files)-1, "file"))
	switch {
	case r.Errors > 0:
		fmt.Fprintf(w, "\nNext: solutionctl lint %s (%s)\n", report.ShellFile(r.Directory), report.Count(r.Errors, "error"))
	case r.Warnings > 0:
		fmt.Fprintf(w, "%s: solutionctl lint %s\n", report.Count(r.Warnings, "warning"), report.ShellFile(r.Directory))
		fallthrough
	default:
		fmt.Fprintf(w, "\nNext: solutionctl build %s\n", report.ShellFile(r.Directory))
	}
}

// openSource finds what --from names: a path, or a chart in a registry.
func openSource(ctx context.Context, resolver *oci.Resolver, name string) (scaffold.Source, error) {
	if ref, ok := strings.CutPrefix(name, "oci://"); ok {
		data, err := pullChart(ctx, resolver, ref)
		return scaffold.Source{Name: name, Chart: data}, err
	}
	if name == "" {
		return scaffold.Source{}, report.Errorf(report.Usage, "--from names nothing").WithHint("name a chart, manifests, a kustomization or a compose file: --from SOURCE")
	}
	if strings.Contains(name, "://") {
		return scaffold.Source{}, report.Errorf(report.Usage, "%s is not read from the network", name).
			WithHint("download it and name the file, or name a chart in a registry: oci://HOST/CHART:VERSION")
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return scaffold.Source{}, err
	}
	root := filepath.VolumeName(absolute) + string(filepath.Separator)
	relative, err := filepath.Rel(root, absolute)
	return scaffold.Source{Name: filepath.ToSlash(filepath.Clean(name)), Files: os.DirFS(root), Path: filepath.ToSlash(relative)}, err
}

// maxChart bounds a chart that comes from a registry.
const maxChart = 64 << 20

// pullChart reads a chart out of a registry, as "helm pull" does.
func pullChart(ctx context.Context, resolver *oci.Resolver, ref string) ([]byte, error) {
	host, rest, _ := strings.Cut(ref, "/")
	if !strings.ContainsAny(rest, ":@") {
		return nil, report.Errorf(report.Usage, "oci://%s names no version", ref).WithHint("write oci://%s/%s:VERSION", cmp.Or(host, "HOST"), cmp.Or(rest, "CHART"))
	}
	image, err := resolver.Resolve(ctx, schema.ImageRef{Name: "chart", Tag: "latest"}, "docker://"+strings.ReplaceAll(ref, "+", "_"))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(image.Blobs, func(b oci.Blob) bool { return string(b.MediaType) == oci.ChartContentType })
	if i < 0 {
		return nil, report.Errorf(report.Invalid, "oci://%s is not a chart", ref).WithHint("name the chart; images are found in what it starts")
	}
	blob := image.Blobs[i]
	if blob.Size > maxChart {
		return nil, report.Errorf(report.Invalid, "oci://%s is larger than %d MiB", ref, maxChart>>20)
	}
	content, err := blob.Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer content.Close() //nolint:errcheck // it was only read
	return io.ReadAll(oci.VerifyReader(content, blob.Descriptor))
}

// valuesFiles reads --values: FILE, or COMPONENT=FILE.
func valuesFiles(flags []string) (map[string][]byte, error) {
	values := map[string][]byte{}
	for _, text := range flags {
		component, file, named := strings.Cut(text, "=")
		if !named {
			component, file = "", text
		}
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, report.Errorf(report.Usage, "--values names %s, which does not exist", file).WithHint("write: --values [COMPONENT=]FILE")
		}
		if err != nil {
			return nil, err
		}
		values[component] = data
	}
	return values, nil
}

func (a *app) localResolver(f initFlags) (*oci.Resolver, error) {
	mirrors, err := parseMirrors(f.mirrors)
	if err != nil {
		return nil, err
	}
	return oci.NewResolver(oci.Options{
		BaseDir: ".", Mirrors: mirrors, PlainHTTP: f.plainHTTP, Keychain: oci.DefaultKeychain(), CertsDirs: oci.DefaultCertsDirs(), Sink: a.Sink,
		OpenArchive: func(string) (fs.FS, io.Closer, error) { return nil, nil, fs.ErrInvalid },
	}), nil
}

// availableImages lists the images of --images, with sources that start from the directory of the project; nil without the flag.
func availableImages(ctx context.Context, resolver *oci.Resolver, places []string, dir string) ([]scaffold.Available, error) {
	if len(places) == 0 {
		return nil, nil
	}
	available := []scaffold.Available{}
	for _, place := range places {
		saved, err := resolver.Saved(ctx, place)
		if err != nil {
			return nil, err
		}
		if len(saved) == 0 {
			return nil, report.Errorf(report.Invalid, "%s has no image with a name", place).WithHint("save images by their names: docker save --output FILE NAME:TAG…")
		}
		for _, image := range saved {
			source, err := oci.RelativeSource(image.Source, dir)
			if err != nil {
				return nil, err
			}
			available = append(available, scaffold.Available{Origin: image.Origin, Source: filepath.ToSlash(source)})
		}
	}
	return available, nil
}
