package schemas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scheduleFields are the fields of the schedule of a CronJob, in order.
var scheduleFields = []struct {
	name     string
	min, max int
	names    []string // instead of numbers, from min on
}{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of the month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of the week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// scheduleProblem returns the reason why the API server rejects a schedule, "" when it accepts it.
func scheduleProblem(schedule string) string {
	if strings.Contains(schedule, "TZ=") {
		return "time zones are written in timeZone"
	}
	if every, ok := strings.CutPrefix(schedule, "@every "); ok {
		if _, err := time.ParseDuration(every); err != nil {
			return "expected a duration such as 1h30m after @every"
		}
		return ""
	}
	if strings.HasPrefix(schedule, "@") {
		known := []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
		if !slices.Contains(known, schedule) {
			return "expected one of " + strings.Join(known, ", ")
		}
		return ""
	}
	fields := strings.Fields(schedule)
	if len(fields) != len(scheduleFields) {
		return fmt.Sprintf("it has %d fields, expected minute, hour, day of the month, month and day of the week", len(fields))
	}
	for i, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			if !validPart(i, part) {
				return fmt.Sprintf("%q is not a %s", field, scheduleFields[i].name)
			}
		}
	}
	return ""
}

// validPart judges one item of a list in a field: *, N, N-M, each with /STEP.
func validPart(field int, part string) bool {
	value, step, stepped := strings.Cut(part, "/")
	if n, err := strconv.Atoi(step); stepped && (err != nil || n <= 0) {
		return false
	}
	if value == "*" || value == "?" {
		return true
	}
	first, last, isRange := strings.Cut(value, "-")
	low, ok := scheduleNumber(field, first)
	if !isRange || !ok {
		return ok
	}
	high, ok := scheduleNumber(field, last)
	return ok && low <= high
}

func scheduleNumber(field int, text string) (int, bool) {
	f := scheduleFields[field]
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.min + i, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= f.min && n <= f.max
}
