package sbom

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// Document is a bill of materials that is written.
type Document struct {
	*schema.PackageList
	Tool string // version of this program
}

// earliest is the time of a document about images without one.
const earliest = "1980-01-01T00:00:00Z"

// created returns the time of the newest image: a document depends on the archive and the program only.
func (d *Document) created() string {
	newest := ""
	for _, image := range d.Images {
		newest = max(newest, image.Created)
	}
	return max(newest, earliest)
}

// sum identifies the content of a document.
func (d *Document) sum() [sha256.Size]byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\n", d.Solution, d.Version, d.Tool)
	for _, image := range d.Images {
		fmt.Fprintf(hash, "%s %s\n", image.Image, image.Manifest)
		for _, p := range image.Packages {
			fmt.Fprintf(hash, "%s %s %s %q\n", p.PURL, p.Digest, p.Layer+p.Bill, p.License)
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// context explains how the list was made: what was looked for, and that it was found in files of images after their build.
func (d *Document) context() string {
	var kinds []string
	for _, k := range d.LookedFor {
		kinds = append(kinds, k.Type+" ("+strings.Join(k.Files, ", ")+")")
	}
	return "Generation context: analyzed. The packages were found in the layers of images after their build. These kinds of packages were looked for: " +
		strings.Join(kinds, "; ") + "."
}

// brings lists the bills of materials that an image brings; empty without any.
func brings(image *schema.ImagePackages) string {
	var b strings.Builder
	for _, bill := range image.Bills {
		if bill.Origin == schema.OriginBrought {
			fmt.Fprintf(&b, "Brought by the image, not verified: %s\n", &bill)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// unread explains which files of an image were not read; empty if all were.
func unread(image *schema.ImagePackages) string {
	var b strings.Builder
	for _, f := range image.Unread {
		fmt.Fprintf(&b, "Not read: %s: %s\n", f.Path, f.Reason)
	}
	if image.UnreadMore > 0 {
		fmt.Fprintf(&b, "Not read: %d more files\n", image.UnreadMore)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// imageURL returns the package URL of an image.
func imageURL(image *schema.ImagePackages) string {
	name, tag, _ := strings.Cut(image.Image, ":")
	arch := ""
	if image.Platform != nil {
		arch = "arch=" + escapePURL(image.Platform.Architecture) + "&"
	}
	return "pkg:oci/" + escapePURL(name) + "@" + escapePURL(image.Manifest) + "?" + arch + "tag=" + escapePURL(tag)
}

// elementID identifies a package of an image in a document.
func elementID(image *schema.ImagePackages, purl string) string {
	sum := sha256.Sum256([]byte(image.Image + "\n" + image.Manifest + "\n" + purl))
	return hex.EncodeToString(sum[:10])
}

// checksum returns the algorithm and the hexadecimal digest of a package. The h1 of a Go module is a SHA-256 digest of the digests of its files.
func checksum(digest string) (algorithm, value string, ok bool) {
	algorithm, value, _ = strings.Cut(digest, ":")
	if algorithm == "h1" {
		sum, err := base64.StdEncoding.DecodeString(value)
		return "SHA256", hex.EncodeToString(sum), err == nil && len(sum) == sha256.Size
	}
	return strings.ToUpper(algorithm), value, value != ""
}

func writeJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}
