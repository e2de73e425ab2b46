package diff

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// hidden stands for a value of a Secret.
const hidden = "(hidden)"

func (d *differ) show(at []place, value any) string {
	if value == nil {
		return ""
	}
	if d.secret && len(at) > 0 && at[0].field != "apiVersion" && at[0].field != "kind" && at[0].field != "type" {
		return hidden // annotations may repeat the data
	}
	if text, ok := value.(string); ok {
		if summary := summarizeCompressed(text); summary != "" {
			return summary
		}
	}
	data, err := json.Marshal(withoutCompressed(value))
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// withoutCompressed returns a value with summaries in place of compressed data.
func withoutCompressed(value any) any {
	switch value := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(value))
		for name, element := range value {
			shown[name] = withoutCompressed(element)
		}
		return shown
	case []any:
		shown := make([]any, len(value))
		for i, element := range value {
			shown[i] = withoutCompressed(element)
		}
		return shown
	case string:
		return cmp.Or(summarizeCompressed(value), value)
	default:
		return value
	}
}

// gzipPrefix begins base64 of gzip: its magic number and its only method.
const gzipPrefix = "H4sI"

// summarizeCompressed returns a summary of compressed data in base64, such as an entry of binaryData, and "" for other texts. Its digest
// distinguishes contents of one size, for readers and for the digest of a plan.
func summarizeCompressed(text string) string {
	if !strings.HasPrefix(text, gzipPrefix) {
		return ""
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("(%d bytes, compressed, sha256:%.6x)", len(data), sha256.Sum256(data))
}
