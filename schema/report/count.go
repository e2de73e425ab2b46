package report

import "strconv"

// Count says how many there are of something: "1 object", "2 objects".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
