package judge

import "math"

// FleissKappa measures how far judges agree who each put every item into one of
// several categories: counts[i][c] judges put item i into category c. All items
// have the same number of judges, two or more.
//
// agreement is the share of pairs of judges who agree on an item, averaged over
// items. kappa is how far that exceeds the agreement of judges who choose at
// random with the same overall shares of categories, (P − P_e)/(1 − P_e); it is NaN
// if all fall into one category, where nothing can exceed it.
//
// Fleiss, Measuring nominal scale agreement among many raters, Psychological
// Bulletin 76 (1971).
func FleissKappa(counts [][]int) (agreement, kappa float64) {
	if len(counts) == 0 {
		return math.NaN(), math.NaN()
	}
	shares := make([]float64, len(counts[0]))
	for _, item := range counts {
		judges, agreeing := 0, 0
		for _, n := range item {
			judges += n
			agreeing += n * (n - 1)
		}
		agreement += float64(agreeing) / float64(judges*(judges-1)) / float64(len(counts))
		for c, n := range item {
			shares[c] += float64(n) / float64(judges*len(counts))
		}
	}
	chance := 0.0
	for _, p := range shares {
		chance += p * p
	}
	if chance > 1-1e-12 {
		return agreement, math.NaN()
	}
	return agreement, (agreement - chance) / (1 - chance)
}
