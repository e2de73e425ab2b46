package sbom_test

import (
	"fmt"

	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/schema"
)

// A query selects a package of Debian by the name of its source package.
func ExampleParseQuery() {
	query, err := sbom.ParseQuery("pkg:deb/debian/openssl@<3.0.15")
	if err != nil {
		fmt.Println(err)
		return
	}
	list := &schema.PackageList{Solution: "shop", Version: "1.0.0", Images: []schema.ImagePackages{{
		Image: "web:1.0.0", Distribution: "debian-12",
		Packages: []schema.Package{
			{Name: "libc6", Version: "2.36-9", Type: "deb", PURL: "pkg:deb/debian/libc6@2.36-9"},
			{Name: "libssl3", Version: "3.0.11-1~deb12u2", Type: "deb", PURL: "pkg:deb/debian/libssl3@3.0.11-1~deb12u2", Source: "openssl"},
		},
	}}}
	for _, p := range query.Search(list).Packages {
		fmt.Println(p.Image, p.Name, p.Version)
	}
	// Output: web:1.0.0 libssl3 3.0.11-1~deb12u2
}
