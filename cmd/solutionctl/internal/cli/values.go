package cli

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
)

// PrintValues prints a table of the values of each chart. What the site has set stands in place of the default, behind a star.
func PrintValues(w *console.Stream, v *schema.SolutionValues) {
	for i, c := range v.Components {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s (chart %s)\n", w.Paint(console.Bold, console.Line(c.Component)), console.Line(c.Chart))
		table := &console.Table{Columns: []string{"PATH", "TYPE", "VALUE", "DESCRIPTION"}}
		for _, value := range c.Values {
			table.Add(console.Line(value.Path), value.Type, console.Line(valueText(&value)), console.Line(describeValue(&value)))
		}
		table.Print(w)
	}
	if len(v.Components) == 0 {
		fmt.Fprintf(w, "no component of %s %s is a chart\n", v.Solution, v.Version)
	}
}

// longestValue is how much of a value stands in the table; JSON has all of it.
const longestValue = 40

func valueText(v *schema.ChartValue) string {
	text, mark := v.Default, ""
	switch {
	case v.Set && v.Secret:
		return "* (secret)"
	case v.Set:
		text, mark = v.Value, "* "
	}
	if runes := []rune(text); len(runes) > longestValue {
		text = string(runes[:longestValue-1]) + "…"
	}
	return mark + text
}

func describeValue(v *schema.ChartValue) string {
	var words []string
	if v.Required {
		words = append(words, "required")
	}
	if v.Locked {
		words = append(words, "locked by the vendor")
	}
	if len(v.Choices) > 0 {
		words = append(words, "one of "+strings.Join(v.Choices, ", "))
	}
	if v.Description != "" {
		words = append(words, v.Description)
	}
	return strings.Join(words, "; ")
}
