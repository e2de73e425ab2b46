// Package strictjson decodes JSON that decides about trust: a document has one meaning or is refused.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

const maxDepth = 32

// Decode decodes one JSON document and refuses more than the standard decoder: unknown fields, fields in another case,
// names that occur twice or differ in case only, text that is not UTF-8, deep nesting and data after the end.
func Decode(data []byte, into any) error {
	if err := Check(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	return checkCase(data, reflect.TypeOf(into))
}

// checkCase refuses fields that the standard decoder has found in spite of their case; other programs do not find them.
func checkCase(data []byte, of reflect.Type) error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) || reflect.PointerTo(of).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	switch of.Kind() {
	case reflect.Struct:
		return checkFields(data, of)
	case reflect.Map:
		var members map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			return err
		}
		for _, member := range members {
			if err := checkCase(member, of.Elem()); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		if of.Elem().Kind() == reflect.Uint8 {
			return nil // base64
		}
		var members []json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			return err
		}
		for _, member := range members {
			if err := checkCase(member, of.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkFields(data []byte, of reflect.Type) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		name = cmp.Or(name, field.Name)
		for member, value := range members {
			if member != name && strings.EqualFold(member, name) {
				return fmt.Errorf("field %q, want %q", member, name)
			}
			if member == name {
				if err := checkCase(value, field.Type); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Check walks over the tokens of one document. It refuses names that occur twice or differ in case only, text that is not
// UTF-8, deep nesting and data after the end.
func Check(data []byte) error {
	if !utf8.Valid(data) {
		return errNotUTF8
	}
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
		return checkText(token)
	}
	names := map[string]bool{}
	for d.More() {
		if delim == '{' {
			name, nameErr := d.Token()
			if nameErr != nil {
				return nameErr
			}
			if err = checkText(name); err != nil {
				return err
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

var errNotUTF8 = errors.New("text that is not valid UTF-8")

// checkText refuses text with the character by which the decoder replaces invalid input, such as half of a surrogate
// pair; other programs drop or replace it differently.
func checkText(token json.Token) error {
	if text, ok := token.(string); ok && strings.ContainsRune(text, utf8.RuneError) {
		return errNotUTF8
	}
	return nil
}
