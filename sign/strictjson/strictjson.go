// Package strictjson decodes JSON that decides about trust: a document has one meaning or is refused.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const maxDepth = 32

// Decode decodes one JSON document and refuses what the standard decoder lets pass: unknown fields, names that
// occur twice or differ in case only, deep nesting and data after the end.
func Decode(data []byte, into any) error {
	if err := Check(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Check walks over the tokens of one document. It refuses names that occur twice or differ in case only, deep nesting
// and data after the end.
func Check(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := checkValue(d, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the end of the document")
	}
	return nil
}

func checkValue(d *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	names := map[string]bool{}
	for d.More() {
		if delim == '{' {
			name, nameErr := d.Token()
			if nameErr != nil {
				return nameErr
			}
			folded := strings.ToLower(name.(string)) // the name of an object's member is always a string
			if names[folded] {
				return fmt.Errorf("field %q occurs twice", name)
			}
			names[folded] = true
		}
		if err = checkValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
