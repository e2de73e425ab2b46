package schema

import "testing"

func TestJSONToYAML(t *testing.T) {
	for name, test := range map[string]struct{ json, yaml string }{
		"the order of fields":         {`{"b": 1, "a": {"z": true, "y": null}}`, "b: 1\na:\n  z: true\n  y: null\n"},
		"lists":                       {`{"empty": [], "none": {}, "some": [{"a": 1, "b": 2}, "c"]}`, "empty: []\nnone: {}\nsome:\n  - a: 1\n    b: 2\n  - c\n"},
		"texts that look like others": {`["true", "0123", "1.0", "no", "", "a: b"]`, "- \"true\"\n- \"0123\"\n- \"1.0\"\n- \"no\"\n- \"\"\n- 'a: b'\n"},
		"several lines":               {`{"text": "a\nb\n"}`, "text: |\n  a\n  b\n"},
		"what no terminal shows":      {`["\u202eevil"]`, "- \"\\U0000202Eevil\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := JSONToYAML([]byte(test.json)); err != nil || string(got) != test.yaml {
				t.Errorf("%q, %v, want %q", got, err, test.yaml)
			}
		})
	}
}
