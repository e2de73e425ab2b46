package report

import "fmt"

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
