package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	_ "time/tzdata" // a configuration is judged alike on a host without time zones
)

// scheduleFields lists the fields of a cron schedule, as Kubernetes reads it in CronJobs.
var scheduleFields = []struct {
	name     string
	min, max int
	names    []string // for min and what follows
}{
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of the month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of the week", min: 0, max: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// longestMonth is how many days a month has at most.
var longestMonth = []int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// checkSchedule refuses a schedule that a CronJob does not take, and one that never comes.
func checkSchedule(text string) error {
	words := strings.Fields(text)
	if len(words) != len(scheduleFields) {
		return fmt.Errorf("%q has %d fields, not five", text, len(words))
	}
	values := make([][]int, len(words))
	for i, word := range words {
		for part := range strings.SplitSeq(word, ",") {
			some, err := scheduleValues(i, part)
			if err != nil {
				return err
			}
			values[i] = append(values[i], some...)
		}
	}
	const days, months, weekdays = 2, 3, 4
	comes := slices.ContainsFunc(values[months], func(month int) bool { return slices.Min(values[days]) <= longestMonth[month-1] })
	if !comes && strings.HasPrefix(words[weekdays], "*") {
		return fmt.Errorf("%q never comes: none of its months has such a day", text)
	}
	return nil
}

// scheduleValues are the values of one part of a field: *, N, A-B, and each with a step behind a slash.
func scheduleValues(field int, part string) ([]int, error) {
	f := scheduleFields[field]
	spread, stride, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		var err error
		if step, err = strconv.Atoi(stride); err != nil || step < 1 {
			return nil, fmt.Errorf("%s: the step of %q is not a number above zero", f.name, part)
		}
	}
	first, last := f.min, f.max
	if spread != "*" {
		from, to, isRange := strings.Cut(spread, "-")
		var err error
		if first, err = scheduleValue(field, from); err != nil {
			return nil, err
		}
		switch {
		case isRange:
			if last, err = scheduleValue(field, to); err != nil {
				return nil, err
			}
		case !stepped:
			last = first
		}
	}
	if first > last {
		return nil, fmt.Errorf("%s: %q ends before it begins", f.name, part)
	}
	step = min(step, f.max+1) // which is beyond the last value already
	var values []int
	for value := first; value <= last; value += step {
		values = append(values, value)
	}
	return values, nil
}

func scheduleValue(field int, word string) (int, error) {
	f := scheduleFields[field]
	if at := slices.Index(f.names, strings.ToLower(word)); at >= 0 {
		return f.min + at, nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%s: %q is not from %d to %d", f.name, word, f.min, f.max)
	}
	return n, nil
}
