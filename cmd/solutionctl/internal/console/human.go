package console

import (
	"fmt"
	"time"
)

// Bytes writes a size with a binary prefix (IEC 80000-13) and three or four digits: "512 B", "1.5 MiB", "1023 KiB".
func Bytes(n int64) string {
	if n < 1024 && n > -1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n), 0
	// 1023.95 and not 1024: what would be rounded to 1024.0 belongs to the next prefix.
	for ; (value >= 1023.95 || value <= -1023.95) && prefix < len("KMGTPE"); prefix++ {
		value /= 1024
	}
	if value >= 99.95 || value <= -99.95 {
		return fmt.Sprintf("%.0f %ciB", value, "KMGTPE"[prefix-1])
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[prefix-1])
}

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
