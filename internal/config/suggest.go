package config

import "slices"

// nearest returns the candidate with the smallest edit distance from s, for "did you mean".
func nearest(s string, candidates []string) string {
	return slices.MinFunc(candidates,
		func(a, b string) int { return editDistance(s, a) - editDistance(s, b) })
}

// editDistance returns the minimum number of insertions, deletions and replacements of characters that turn a
// into b (Levenshtein distance).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
