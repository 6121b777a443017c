package judge

import "math"

// FleissKappa measures how far judges agree who each put items into one of
// several categories: counts[i][c] judges put item i into category c. Items may have
// different numbers of judges, and different ones.
//
// agreement is the share of pairs of judges of an item who agree on it, averaged
// over the items that have two judges or more. kappa is how far that exceeds the
// agreement of judges who choose at random with the overall shares of categories, the mean
// of those of all items with a judge: (P − P_e)/(1 − P_e). Both are NaN if no item
// has two judges; kappa is, too, if all fall into one category, where nothing can
// exceed it.
//
// Fleiss, Measuring nominal scale agreement among many raters, Psychological
// Bulletin 76 (1971). With a judge or two missing here and there: Gwet, Handbook of
// Inter-Rater Reliability, 4th edition (2014), chapter 2.
func FleissKappa(counts [][]int) (agreement, kappa float64) {
	var shares []float64 // sums over the items
	items, paired := 0, 0
	for _, item := range counts {
		judges, agreeing := 0, 0
		for _, n := range item {
			judges += n
			agreeing += n * (n - 1)
		}
		if judges == 0 {
			continue
		}
		items++
		if shares == nil {
			shares = make([]float64, len(item))
		}
		for c, n := range item {
			shares[c] += float64(n) / float64(judges)
		}
		if judges > 1 {
			paired++
			agreement += float64(agreeing) / float64(judges*(judges-1))
		}
	}
	if paired == 0 {
		return math.NaN(), math.NaN()
	}
	agreement /= float64(paired)
	chance := 0.0
	for _, p := range shares {
		chance += p / float64(items) * (p / float64(items))
	}
	if chance > 1-1e-12 {
		return agreement, math.NaN()
	}
	return agreement, (agreement - chance) / (1 - chance)
}
