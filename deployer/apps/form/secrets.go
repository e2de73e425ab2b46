package form

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/solutionctl/solutionctl/schema/report"
)

// hidden stands for a secret in a message.
const hidden = "(hidden)"

// minHidden is the length from which a secret is hidden without quotes, too: a shorter one may be part of any word.
const minHidden = 4

// HideSecrets returns an error about a custom resource without the values of its secrets: an API server and its webhooks quote values that they
// do not accept. Specs have the secrets.
func (f *Form) HideSecrets(err error, specs ...map[string]any) error {
	if err == nil {
		return nil
	}
	var secrets []string
	for _, spec := range specs {
		secrets = appendSecrets(secrets, f.spec, "", spec)
	}
	text := hide(err.Error(), secrets)
	if text == err.Error() {
		return err
	}
	known, ok := errors.AsType[*report.Error](err)
	if !ok {
		return errors.New(text)
	}
	return &report.Error{Code: known.Code, Hint: hide(known.Hint, secrets), Remedies: known.Remedies, Err: errors.New(text)}
}

// hide replaces secrets in a text, the longest first: one may be part of another.
func hide(text string, secrets []string) string {
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		if encoded, err := json.Marshal(secret); err == nil {
			text = strings.ReplaceAll(text, string(encoded), hidden)
		}
		text = strings.ReplaceAll(text, strconv.Quote(secret), hidden)
		if len(secret) >= minHidden {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return text
}

// appendSecrets appends the values of the secrets in a value of this schema. The path is that of its field.
func appendSecrets(list []string, s *apiextensionsv1.JSONSchemaProps, path string, value any) []string {
	if s == nil {
		return list
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			property, known := s.Properties[name]
			if !known && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
				property, known = *s.AdditionalProperties.Schema, true
			}
			if known {
				list = appendSecrets(list, &property, path+"."+name, inner)
			}
		}
	case []any:
		for _, item := range value {
			if s.Items != nil {
				list = appendSecrets(list, s.Items.Schema, path, item)
			}
		}
	case string:
		if value != "" && isSecret(path, s) {
			list = append(list, value)
		}
	}
	return list
}
