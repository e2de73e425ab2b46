// Package conversion changes Websites of one API version into another.
//
// It works on the objects as JSON and not as Go types: what it does not name it keeps, and so nothing is lost, neither a
// field that was added later nor the difference between a field that is empty and one that is not there.
package conversion

import (
	"fmt"

	"github.com/solutionctl/example-solution/api/v1alpha1"
	"github.com/solutionctl/example-solution/api/v1beta1"
)

// textField is the name of the text below the title, field of the spec, in each API version.
var textField = map[string]string{
	v1alpha1.GroupVersion.String(): "message",
	v1beta1.GroupVersion.String():  "text",
}

// Convert changes a Website into the API version to. When it fails the object is as it was.
func Convert(website map[string]any, to string) error {
	from, _ := website["apiVersion"].(string)
	if website["kind"] != "Website" || textField[from] == "" || textField[to] == "" {
		return fmt.Errorf("cannot convert a %v of %q to %q", website["kind"], from, to)
	}
	website["apiVersion"] = to
	spec, _ := website["spec"].(map[string]any)
	if text, ok := spec[textField[from]]; ok && from != to {
		delete(spec, textField[from])
		spec[textField[to]] = text
	}
	return nil
}
