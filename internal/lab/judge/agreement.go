package judge

import "math"

// FleissKappa measures how far judges agree who put items into categories: counts[i][c]
// is the number of judges who put item i into category c. Items may have different
// judges, and different numbers of them.
//
// For each item with two or more judges, take the share of pairs of its judges who
// agree. The mean of these shares, P, is returned as agreement.
//
// Judges who choose at random, each category as often as it is chosen over all items,
// would agree in a share P_e, the sum of the squares of the categories' frequencies.
// (The frequencies are means over the items with a judge.) kappa is
// (P − P_e)/(1 − P_e).
//
// Both are NaN if no item has two judges. kappa is also NaN if all judges chose the same
// category, since P_e is 1 then.
//
// Fleiss, Measuring nominal scale agreement among many raters, Psychological
// Bulletin 76 (1971). For items with different numbers of judges: Gwet, Handbook of
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
