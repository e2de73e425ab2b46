package schema

import (
	"strings"
	"testing"
)

// TestCheckSchedule: what a CronJob takes, what it does not, and what never comes.
func TestCheckSchedule(t *testing.T) {
	for text, want := range map[string]string{
		"*/30 * * * *":                   "",
		"0 3 * * mon-fri":                "",
		"0,15,30-45/5 3 1 1 0":           "",
		"5/10 * * JAN *":                 "",
		"0 0 29 2 *":                     "",
		"*/60 * * * *":                   "", // of an hour's 60 minutes, the first
		"0 0 30 2/9223372036854775807 *": "never comes",
		"0 0 31 2 mon":                   "", // on Mondays
		"61 * * * *":                     "minute",
		"* 24 * * *":                     "hour",
		"* * 0 * *":                      "day of the month",
		"* * * foo *":                    "month",
		"* * * * 7":                      "day of the week",
		"*/0 * * * *":                    "step",
		"5-1 * * * *":                    "ends before it begins",
		"0 0 31 2,4 *":                   "never comes",
		"1,,2 * * * *":                   "minute",
		"* * * *":                        "4 fields",
	} {
		err := checkSchedule(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
