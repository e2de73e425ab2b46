package testcluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Images are the references of the images that the node has, by the digest each of them has: names with a tag, with a
// digest, and what Kubernetes calls an image's ID.
func (n *Node) Images() (map[string]string, error) {
	out, err := n.ctr("images", "list")
	if err != nil {
		return nil, err
	}
	images := map[string]string{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] != "REF" {
			images[fields[0]] = fields[2]
		}
	}
	return images, nil
}

// ForgetImages removes all images from the node but the one that every pod has, as if none had ever been pulled.
func (n *Node) ForgetImages() error {
	images, err := n.Images()
	if err != nil {
		return err
	}
	remove := []string{"images", "remove", "--sync"} // with their content
	for name, digest := range images {
		if digest != images[pauseImage] {
			remove = append(remove, name)
		}
	}
	if len(remove) > 3 {
		_, err = n.ctr(remove...)
	}
	return err
}

// Content are the digests of all that the node has stored of images.
func (n *Node) Content() ([]string, error) {
	out, err := n.ctr("content", "list", "--quiet")
	return strings.Fields(out), err
}

// ctr runs containerd's own client.
func (n *Node) ctr(args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(n.cluster.bin.node, "ctr"), append([]string{"--address", ContainerdSocket, "--namespace", "k8s.io"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := n.RunOnNode(cmd); err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// importPause gives containerd the only image that does not come out of a registry: of the container that holds a pod's
// namespaces.
func (n *Node) importPause() error {
	images, err := n.Images()
	if err != nil || images[pauseImage] != "" {
		return err
	}
	return n.importProgram(pauseImage, "/pause", "65535:65535", map[string]string{"/pause": filepath.Join(n.cluster.bin.node, "pause")})
}

// ImportProgram gives the node an image that starts a program of this host as root. It has the program in /bin, and the libraries that
// the program needs and further files of this host where they are here.
func (n *Node) ImportProgram(ctx context.Context, image, program string, files ...string) error {
	shared, err := libraries(ctx, program)
	if err != nil {
		return err
	}
	entrypoint := "/bin/" + filepath.Base(program)
	content := map[string]string{entrypoint: program}
	for _, file := range slices.Concat(shared, files) {
		content[file] = file
	}
	return n.importProgram(image, entrypoint, "0:0", content)
}

// libraries are the files that the dynamic linker wants for a program.
func libraries(ctx context.Context, program string) ([]string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	wanted, err := file.ImportedLibraries()
	if err = errors.Join(err, file.Close()); err != nil || len(wanted) == 0 {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", program, withStderr(err))
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(field string) bool { return !strings.HasPrefix(field, "/") }), nil
}

// importProgram gives the node an image of files of this host, by their names in it.
func (n *Node) importProgram(image, entrypoint, user string, files map[string]string) error {
	content := map[string][]byte{}
	for name, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		content[strings.TrimPrefix(name, "/")] = data
	}
	archive, err := imageArchive(image, entrypoint, user, content)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(n.cluster.Dir, "image-*.tar")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(archive)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = n.ctr("images", "import", file.Name())
	return err
}

// imageArchive is an image with nothing but the files, as 'docker save' writes it.
func imageArchive(image, entrypoint, user string, files map[string][]byte) ([]byte, error) {
	layer, err := tarball(files)
	if err != nil {
		return nil, err
	}
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(layer); err != nil {
		return nil, err
	}
	if err = w.Close(); err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{entrypoint}, "User": user},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{image}, "Layers": []string{"layer.tar.gz"}}})
	if err != nil {
		return nil, err
	}
	return tarball(map[string][]byte{"manifest.json": manifest, "config.json": config, "layer.tar.gz": compressed.Bytes()})
}

func tarball(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}
