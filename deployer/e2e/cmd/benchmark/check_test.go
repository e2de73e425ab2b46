//go:build linux

package main

import "testing"

func TestLowerBound(t *testing.T) {
	ascending := func(n int) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = float64(n - i)
		}
		return list
	}
	for _, test := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"no values", nil, 0},
		{"too few values", ascending(5), 0},
		{"as few as possible", ascending(6), 1},
		{"ten values", ascending(10), 2},
		{"the pairs of a comparison", ascending(checkedPairs), 4},
		{"outliers do not matter", append([]float64{100, 100, 100}, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lowerBound(test.values); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
