package chart

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"strings"
)

// Recover recovers a generated value. rendered is a text with these values, live the text of an earlier rendering in its
// place: where they differ in one of the values, the value of live replaces it. It reports whether it did.
//
// It accepts a value only in the form that its function gives it, because it becomes part of templates again: letters
// and digits of the same length for randAlphaNum, certificates and keys with nothing around them for genCA. Values of
// free form (randAscii, htpasswd, shuffle) are not recovered. A value may be an argument of further calls, so render
// again until nothing more is found.
func (m *GeneratedValues) Recover(rendered, live string) bool {
	if rendered == live {
		return false
	}
	for i := range m.Values {
		if value, ok := m.Values[i].recover(rendered, live); ok {
			m.Values[i].Value = value
			return true
		}
	}
	return false
}

func (d *GeneratedValue) recover(rendered, live string) (json.RawMessage, bool) {
	var value any
	if json.Unmarshal(d.Value, &value) != nil {
		return nil, false
	}
	switch value := value.(type) {
	case string:
		if d.Function == "genPrivateKey" {
			return encoded(live, value == rendered && isPEM(live))
		}
		return encoded(recallText(value, alphabets[d.Function], rendered, live))
	case map[string]any: // a certificate and its key
		for name, field := range value {
			if field == rendered && isPEM(live) {
				value[name] = live
				return encoded(value, true)
			}
		}
	}
	return nil, false
}

func encoded(value any, ok bool) (json.RawMessage, bool) {
	data, err := json.Marshal(value)
	return data, ok && err == nil
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// alphabets are the characters of functions that generate no others.
var alphabets = map[string]string{
	"bcrypt": letters + digits + "./$", "encryptAES": letters + digits + "+/=", "randAlpha": letters, "randAlphaNum": letters + digits,
	"randBytes": letters + digits + "+/=", "randNumeric": digits, "uuidv4": digits + "abcdef-",
}

// minRecalled is the length below which a value may stand in a text by chance.
const minRecalled = 6

// recallText finds the value in a live text at the place where a generated value stands in the rendered one.
func recallText(drawn, alphabet, rendered, live string) (string, bool) {
	at := strings.Index(rendered, drawn)
	if alphabet == "" || len(drawn) < minRecalled || at < 0 || len(live) != len(rendered) {
		return "", false
	}
	end := at + len(drawn)
	value := live[at:end]
	return value, live[:at] == rendered[:at] && live[end:] == rendered[end:] && strings.Trim(value, alphabet) == ""
}

// isPEM reports whether a text is PEM blocks as this package writes them, and nothing else.
func isPEM(text string) bool {
	var again bytes.Buffer
	for rest := []byte(text); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || len(block.Headers) > 0 || strings.Trim(block.Type, "ABCDEFGHIJKLMNOPQRSTUVWXYZ ") != "" {
			return false
		}
		again.Write(pem.EncodeToMemory(block))
	}
	return again.String() == text && text != ""
}
