package config

// nearest returns the candidate most like s, or "" where none is like it: at most a third of its
// letters may be missing, added, changed or swapped with their neighbour.
func nearest(s string, candidates []string) string {
	best, least := "", max(1, len(s)/3)+1
	for _, c := range candidates {
		if d := distance(s, c); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the edits between a and b: insertions, deletions, substitutions and swaps of
// neighbours (optimal string alignment).
func distance(a, b string) int {
	var before []int // two rows back
	prev, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, make([]int, len(b)+1)
	}
	return prev[len(b)]
}
