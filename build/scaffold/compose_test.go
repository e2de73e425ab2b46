package scaffold

import (
	"strings"
	"testing"
)

// expanded is a text as the kubelet expands it, when each variable has a value.
func expanded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch end := strings.IndexByte(rest, ')'); {
		case strings.HasPrefix(rest, "$$"):
			b.WriteByte('$')
			i++
		case strings.HasPrefix(rest, "$(") && end > 0:
			b.WriteString("VALUE")
			i += end
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// TestEscaped: the kubelet expands an escaped text to the text itself.
func TestEscaped(t *testing.T) {
	for _, text := range []string{"a$$b", "$$(x)", "$(x)", "$x", "$", "$$$", "a$(b)$c$$(d)$", "${x}"} {
		if got := expanded(escaped(text)); got != text {
			t.Errorf("%q is %q, which becomes %q", text, escaped(text), got)
		}
	}
	if got := escaped("a$b"); got != "a$b" {
		t.Errorf("without need: %q", got)
	}
}
