package form

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/solutionctl/solutionctl/schema"
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
		replaceSecrets(f.spec, "", spec, func(secret any) any {
			if text, ok := secret.(string); ok {
				secrets = append(secrets, text)
			}
			return secret
		})
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

// Shown returns a copy of a spec for a screen, without the values of its secrets.
func (f *Form) Shown(spec map[string]any) map[string]any {
	shown, _ := replaceSecrets(f.spec, "", spec, func(any) any { return hidden }).(map[string]any)
	return shown
}

// replaceSecrets returns a copy of a value of this schema with other secrets. The path is that of its field.
func replaceSecrets(s *apiextensionsv1.JSONSchemaProps, path string, value any, replace func(any) any) any {
	switch value := value.(type) {
	case nil:
		return nil
	case map[string]any:
		changed := make(map[string]any, len(value))
		for name, inner := range value {
			at := path + "." + name
			if variable, ok := value["name"].(string); ok && name == "value" && schema.IsSecretField(value, name) {
				at = variable
			}
			changed[name] = replaceSecrets(orAny(inside(s, name)), at, inner, replace)
		}
		return changed
	case []any:
		changed := make([]any, len(value))
		for i, item := range value {
			changed[i] = replaceSecrets(orAny(inside(s, strconv.Itoa(i))), path, item, replace)
		}
		return changed
	default:
		if _, isBool := value.(bool); !isBool && value != any("") && isSecret(path, s) {
			return replace(value)
		}
		return value
	}
}

// orAny is a schema, or that of any value.
func orAny(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	return cmp.Or(s, &apiextensionsv1.JSONSchemaProps{})
}
