package report

import (
	"fmt"
	"time"
)

// Duration writes a duration with as many digits as a person cares about: "35ms", "4.2s", "3m05s", "2h07m".
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	case d < 59950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 3599500*time.Millisecond:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
}
