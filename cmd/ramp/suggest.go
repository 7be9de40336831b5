package main

import (
	"slices"
)

// didYouMean returns a question about the known word that is most like an unknown one, with a text before
// the word, or "" if none is like it.
func didYouMean(unknown, before string, known []string) string {
	best, word := len(unknown)/3+1, ""
	slices.Sort(known)
	for _, candidate := range known {
		if d := distance(unknown, candidate); d <= best && d < len(candidate) {
			best, word = d-1, candidate
		}
	}
	if word == "" {
		return ""
	}
	return "; did you mean " + before + word + "?"
}

// distance returns how many letters must be inserted, removed, replaced, or swapped with the next one, to
// make one word of the other.
func distance(a, b string) int {
	const most = 40 // of what somebody types
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	var rows [most + 1][most + 1]int
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			same := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				same++
			}
			rows[i][j] = min(same, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
