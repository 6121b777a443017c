package interpret

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"overcomplete/vectors"
)

// recipe is the paper's (§4.1), word by word on the dense matrix.
type recipe struct {
	top       [][]int        // of each dimension, four rows or fewer
	intruders []map[int]bool // of each dimension
}

func newRecipe(a [][]float64) *recipe {
	n, dimensions := len(a), len(a[0])
	median, tenth := make([]float64, dimensions), make([]float64, dimensions)
	r := &recipe{make([][]int, dimensions), make([]map[int]bool, dimensions)}
	for k := range dimensions {
		rows := make([]int, n)
		for i := range rows {
			rows[i] = i
		}
		slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(a[j][k], a[i][k]) })
		median[k], tenth[k] = a[rows[n/2]][k], a[rows[n/10-1]][k]
		for _, i := range rows[:4] {
			if a[i][k] > 0 {
				r.top[k] = append(r.top[k], i)
			}
		}
	}
	for k := range dimensions {
		r.intruders[k] = make(map[int]bool)
		for i := range a {
			prominent := false
			for other, v := range a[i] {
				prominent = prominent || other != k && v != 0 && v > median[other] && v >= tenth[other]
			}
			if a[i][k] <= median[k] && prominent && !slices.Contains(r.top[k], i) {
				r.intruders[k][i] = true
			}
		}
	}
	return r
}

func TestIntrusionFollowsRecipe(t *testing.T) {
	ties := randomCodes(4, 60, 6, .7) // for the median and for the top
	for j, k := range ties.Index {
		if k%2 == 0 {
			ties.Value[j] = 1
		}
	}
	mostlyNegative := randomCodes(5, 60, 5, .9)
	for i, v := range mostlyNegative.Value {
		mostlyNegative.Value[i] = min(v, float32(i%11))
		if mostlyNegative.Value[i] == 0 {
			mostlyNegative.Value[i] = -1
		}
	}
	for name, s := range map[string]*vectors.Sparse{
		"sparse": randomCodes(1, 300, 30, .08), "sparser": randomCodes(2, 200, 40, .02), "dense": randomCodes(3, 100, 10, 1),
		"ties": ties, "negative": mostlyNegative,
	} {
		t.Run(name, func(t *testing.T) {
			x := NewIndex(s)
			want := newRecipe(dense(s))
			in := NewIntrusion(x)
			live := in.Dimensions()
			variances := x.Variances()
			for d := 1; d < len(live); d++ {
				if variances[live[d]] > variances[live[d-1]] {
					t.Errorf("dimension %d of variance %v after %d of %v", live[d], variances[live[d]], live[d-1], variances[live[d-1]])
				}
			}
			places := make([]int, 5)
			for k := range s.Cols {
				isLive := len(want.top[k]) == 4 && len(want.intruders[k]) > 0
				if slices.Contains(live, k) != isLive {
					t.Fatalf("dimension %d is live: %t", k, !isLive)
				}
				if !isLive {
					continue
				}
				rng := rand.New(rand.NewPCG(1, uint64(k)))
				drawn := make(map[int]int)
				draws := 60 * len(want.intruders[k])
				for range draws {
					it := in.Draw(k, rng)
					places[it.Intruder]++
					drawn[it.Rows[it.Intruder]]++
					rest := slices.Delete(slices.Clone(it.Rows[:]), it.Intruder, it.Intruder+1)
					slices.Sort(rest)
					top := slices.Clone(want.top[k])
					slices.Sort(top)
					if it.Dimension != k || !slices.Equal(rest, top) {
						t.Fatalf("dimension %d: %v, want the words %v", k, it, top)
					}
				}
				// Of 60 draws an intruder, none is left out (probability e^-60).
				for i := range want.intruders[k] {
					if drawn[i] == 0 {
						t.Errorf("dimension %d: %d was never drawn", k, i)
					}
				}
				if len(drawn) != len(want.intruders[k]) {
					t.Errorf("dimension %d: intruders %v, want %v", k, drawn, want.intruders[k])
				}
			}
			total := 0
			for _, n := range places {
				total += n
			}
			for place, n := range places {
				// Five standard deviations of a binomial distribution.
				if p := float64(n) / float64(total); math.Abs(p-.2) > 5*math.Sqrt(.16/float64(total)) {
					t.Errorf("the intruder is at place %d in %v of %d instances", place, p, total)
				}
			}
		})
	}
}

func TestMatchedIntruders(t *testing.T) {
	s := randomCodes(6, 1000, 20, .1)
	in := NewIntrusion(NewIndex(s))
	rng := rand.New(rand.NewPCG(1, 1))
	for k := range s.Cols {
		p := in.pool(k)
		for range 100 {
			it := p.drawMatched(rng)
			intruder := it.Rows[it.Intruder]
			near := false
			for place, row := range it.Rows {
				between := 0
				for _, i := range p.intruders {
					if min(row, intruder) <= int(i) && int(i) <= max(row, intruder) {
						between++
					}
				}
				near = near || place != it.Intruder && between <= 10
			}
			if !near {
				t.Fatalf("dimension %d: intruder %d is near none of %v", k, intruder, it.Rows)
			}
		}
	}
}

// Against the dense matrix, sorted.
func TestQuarters(t *testing.T) {
	const rows = 60
	dimensions := []struct {
		positive, negative int
		has                bool
	}{{15, 5, false}, {16, 0, true}, {16, 24, true}, {18, 23, false}, {23, 3, true}, {40, 0, true}, {40, 1, false}, {0, 40, false}, {0, 0, false}}
	rng := rand.New(rand.NewPCG(7, 7))
	a := make([][]float64, rows)
	for i := range a {
		a[i] = make([]float64, len(dimensions))
	}
	for k, d := range dimensions {
		for j, i := range rng.Perm(rows)[:d.positive+d.negative] {
			if a[i][k] = -1; j < d.positive {
				a[i][k] = 1 + float64(rng.IntN(9)) // some are equal
			}
		}
	}
	s := newCodes(rows, len(dimensions))
	for i := range a {
		for k, v := range a[i] {
			if v != 0 {
				s.Index, s.Value = append(s.Index, int32(k)), append(s.Value, float32(v))
			}
		}
		s.Ptr = append(s.Ptr, int64(len(s.Index)))
	}
	in := NewIntrusion(NewIndex(s))
	for k, d := range dimensions {
		var rows, inactive []int
		for i := range a {
			if a[i][k] > 0 {
				rows = append(rows, i)
			} else if a[i][k] == 0 {
				inactive = append(inactive, i)
			}
		}
		slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(a[j][k], a[i][k]) })
		got := in.quarters(k)
		if want := map[bool]int{true: 4}[d.has]; len(got) != want {
			t.Errorf("%d positive and %d negative words of %d: %d quarters, want %d", d.positive, d.negative, s.Rows, len(got), want)
			continue
		}
		for q := range got {
			want := rows[q*len(rows)/4 : (q+1)*len(rows)/4]
			drawn := make(map[int]bool)
			for range 40 * len(want) {
				it := got[q].draw(rng)
				intruder := it.Rows[it.Intruder]
				words := slices.Delete(slices.Clone(it.Rows[:]), it.Intruder, it.Intruder+1)
				slices.Sort(words)
				near := false
				for _, row := range words {
					if !slices.Contains(want, row) {
						t.Fatalf("dimension %d, quarter %d: word %d of value %v", k, q, row, a[row][k])
					}
					drawn[row] = true
					between := 0
					for _, i := range inactive {
						if min(row, intruder) <= i && i <= max(row, intruder) {
							between++
						}
					}
					near = near || between <= 10
				}
				if len(slices.Compact(words)) != 4 || it.Dimension != k || a[intruder][k] != 0 || !near {
					t.Fatalf("dimension %d, quarter %d: %v", k, q, it)
				}
			}
			// Each word is in a question with a probability of 4/n: none is left out of 40·n
			// questions (e^-160).
			if len(drawn) != len(want) {
				t.Errorf("dimension %d, quarter %d: %d of %d words were drawn", k, q, len(drawn), len(want))
			}
		}
	}
}

func oddOneOuts(t *testing.T, in *Intrusion, reference *vectors.Dense) Coherence {
	t.Helper()
	c, err := in.OddOneOut(t.Context(), reference, 1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOddOneOut(t *testing.T) {
	// Dimension k belongs to the words k, k+200, …; so does a direction of the
	// reference, beside a vector that all words share. Vectors are of any length. Words
	// without a dimension have the opposite ones, so that what is shared is the mean.
	const words, dimensions, shared = 4000, 200, 1000
	s := newCodes(2*words, dimensions)
	same := &vectors.Dense{Words: s.Words, Dim: dimensions, Data: slices.Repeat([]float32{shared}, 2*words*dimensions)}
	other := &vectors.Dense{Words: s.Words, Dim: 10}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range words {
		s.Index, s.Value = append(s.Index, int32(i%dimensions)), append(s.Value, 1+rng.Float32())
		s.Ptr = append(s.Ptr, int64(i+1))
		length := float32(math.Pow(100, rng.Float64()))
		same.Row(i)[i%dimensions] += length
		same.Row(i + words)[i%dimensions] -= length
	}
	for range words {
		s.Ptr = append(s.Ptr, int64(words))
	}
	for range 2 * words * other.Dim {
		other.Data = append(other.Data, float32(rng.NormFloat64()))
	}
	in := NewIntrusion(NewIndex(s))
	one := Estimate{1, 1, 1}
	if got := oddOneOuts(t, in, same); got.Dimensions != dimensions || got.Any != one || got.Matched != one {
		t.Errorf("where dimensions are directions of the reference: %v", got)
	}
	// 2000 guesses, 10 of which share their four words: a standard deviation of at
	// most √(.16/200) = .028. The bound is four of them, so that no guess at all fails.
	got := oddOneOuts(t, in, other)
	for _, e := range []Estimate{got.Any, got.Matched} {
		if math.Abs(e.Mean-.2) > .113 || e.Low > e.Mean || e.High < e.Mean || e.Low == e.High {
			t.Errorf("by guessing: %v", e)
		}
	}
	if again := oddOneOuts(t, in, other); !reflect.DeepEqual(again, got) {
		t.Errorf("again: %v, not %v", again, got)
	}
	for _, n := range []int64{0, 20} {
		if _, err := in.OddOneOut(doneAfter(n), other, 1); err != context.Canceled {
			t.Errorf("interrupted after %d checks: %v", n, err)
		}
	}
}

// Where the words of the negative sides have directions in the reference and those of the
// positive sides don't, intruders are found in the opposite codes only.
func TestOddOneOutOfOpposite(t *testing.T) {
	const words, dimensions = 2000, 100
	s := newCodes(2*words, dimensions)
	reference := &vectors.Dense{Words: s.Words, Dim: dimensions, Data: make([]float32, 2*words*dimensions)}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 2 * words {
		value := 1 + rng.Float32()
		if i%2 == 1 {
			value = -value
			reference.Row(i)[i/2%dimensions] = 1
		}
		s.Index, s.Value = append(s.Index, int32(i/2%dimensions)), append(s.Value, value)
		s.Ptr = append(s.Ptr, int64(i+1))
	}
	before := slices.Clone(s.Value)
	negative := oddOneOuts(t, NewIntrusion(NewIndex(Opposite(s))), reference)
	if one := (Estimate{1, 1, 1}); negative.Dimensions != dimensions || negative.Any != one || negative.Matched != one {
		t.Errorf("negative sides: %v", negative)
	}
	if positive := oddOneOuts(t, NewIntrusion(NewIndex(s)), reference); positive.Dimensions != dimensions || positive.Any.Mean > .35 {
		t.Errorf("positive sides: %v", positive) // four words of zeros
	}
	if !slices.Equal(s.Value, before) {
		t.Error("the codes were changed")
	}
}

// In the reference, the words of one quarter of each dimension have the dimension's
// direction, and all others are zeros: in that quarter every intruder is found, and in
// the others the first of five words, which are alike, is taken for it. Words without a
// dimension have the opposite directions, so that the mean is zero.
func TestOddOneOutOfQuarters(t *testing.T) {
	const dimensions, each, words = 50, 40, 50 * 40
	s := newCodes(2*words, dimensions)
	rank := func(i int) int { return i / dimensions * 7 % each } // of a word in its dimension
	for i := range words {
		s.Index, s.Value = append(s.Index, int32(i%dimensions)), append(s.Value, float32(each-rank(i)))
		s.Ptr = append(s.Ptr, int64(i+1))
	}
	for range words {
		s.Ptr = append(s.Ptr, words)
	}
	in := NewIntrusion(NewIndex(s))
	one := Estimate{1, 1, 1}
	for quarter := range 4 {
		reference := &vectors.Dense{Words: s.Words, Dim: dimensions, Data: make([]float32, s.Rows*dimensions)}
		for i := range words {
			if rank(i)/(each/4) == quarter {
				reference.Row(i)[i%dimensions], reference.Row(i + words)[i%dimensions] = 3, -3
			}
		}
		got := oddOneOuts(t, in, reference)
		if got.Words != s.Rows || got.Seed != 1 || got.Dimensions != dimensions || got.Quartered != dimensions || len(got.Scores) != dimensions || len(got.Quarters) != 4 {
			t.Fatalf("quarter %d: %+v", quarter, got)
		}
		for q, e := range got.Quarters {
			// Of 250 guesses the standard deviation is √(.16/250) = .025.
			if q == quarter && e != one || q != quarter && (math.Abs(e.Mean-.2) > .1 || e.Low >= e.Mean || e.High <= e.Mean) {
				t.Errorf("quarter %d as it is asked about quarter %d: %v", quarter, q, e)
			}
		}
		// The means are those of the dimensions.
		var sums [6]float64
		for k, score := range got.Scores {
			if score.Dimension != k || score.Quarters[quarter] != 1 {
				t.Fatalf("quarter %d: dimension %d: %+v", quarter, k, score)
			}
			for j, share := range append([]float64{score.Any, score.Matched}, score.Quarters...) {
				sums[j] += share / dimensions
			}
		}
		for j, e := range append([]Estimate{got.Any, got.Matched}, got.Quarters...) {
			if math.Abs(e.Mean-sums[j]) > 1e-9 {
				t.Errorf("quarter %d: mean %d is %v, of the dimensions %v", quarter, j, e.Mean, sums[j])
			}
		}
		if found := got.Any == one; found != (quarter == 0) {
			t.Errorf("quarter %d: top words: %v", quarter, got.Any)
		}
	}
	if got := oddOneOuts(t, NewIntrusion(NewIndex(randomCodes(3, 100, 10, 1))), &vectors.Dense{Words: numberedWords(100), Dim: 1, Data: make([]float32, 100)}); got.Dimensions != 10 || got.Quarters != nil || got.Quartered != 0 || got.Scores[0].Quarters != nil {
		t.Errorf("without words that are inactive: %+v", got)
	}
}

// Words come in ten bands of frequency, and in the reference a word has its band's
// direction. The top words of a dimension, from the middle of its band, have
// directions of their own besides: an intruder of the same band is nearer to them
// than they are to each other and never found, one of another band always is.
func TestMatchedOddOneOut(t *testing.T) {
	const bands, each = 10, 40
	s := newCodes(bands*each, bands+bands*each/3)
	reference := &vectors.Dense{Words: s.Words, Dim: bands + 4, Data: make([]float32, s.Rows*(bands+4))}
	others := 0
	for i := range s.Rows {
		band, place := i/each, i%each-18
		k := int32(band)
		reference.Row(i)[band] = 1
		if 0 <= place && place < 4 {
			reference.Row(i)[bands+place] = .5
		} else { // dimensions of three words, which make them intruders
			k = int32(bands + others/3)
			others++
		}
		s.Index, s.Value, s.Ptr = append(s.Index, k), append(s.Value, 1), append(s.Ptr, int64(i+1))
	}
	got := oddOneOuts(t, NewIntrusion(NewIndex(s)), reference)
	// Of the 396 intruders of a dimension, 360 are of another band: a standard
	// deviation of √(.09·.91/100) = .03 for 100 draws.
	if got.Dimensions != bands || math.Abs(got.Any.Mean-360./396) > .12 || got.Matched != (Estimate{}) {
		t.Errorf("%+v", got)
	}
}

// A bootstrap's interval for a mean is that of the normal distribution, nearly.
func TestBootstrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	sample := make([]float64, 900)
	sum, squares := 0.0, 0.0
	for i := range sample {
		sample[i] = float64(rng.IntN(11)) / 10
		sum, squares = sum+sample[i], squares+sample[i]*sample[i]
	}
	mean := sum / 900
	half := 1.96 * math.Sqrt((squares/900-mean*mean)/900)
	got := bootstrap(sample, 1)
	// The percentiles of 2,000 resamples have a standard error of 0.06 of the half width.
	if math.Abs(got.Mean-mean) > 1e-12 || math.Abs(got.Low-(mean-half)) > .25*half || math.Abs(got.High-(mean+half)) > .25*half {
		t.Errorf("%v, want %v ± %v", got, mean, half)
	}
	if got := bootstrap(nil, 1); got != (Estimate{}) {
		t.Errorf("of nothing: %v", got)
	}
}

// Against the whole product, sorted. Twice as many rows as are multiplied at a time,
// and some.
func TestRandomProjection(t *testing.T) {
	const rows, dim, cols = 2*chunk + 10, 7, 50
	codes := randomCodes(1, rows, cols, .2)
	x := &vectors.Dense{Words: codes.Words, Dim: dim, Data: make([]float32, rows*dim)}
	rng := rand.New(rand.NewPCG(9, 9))
	for i := range x.Data {
		x.Data[i] = float32(rng.NormFloat64())
	}
	for _, nonnegative := range []bool{false, true} {
		got, err := RandomProjection(t.Context(), x, &codes.CSR, nonnegative, 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Validate(); err != nil || !slices.Equal(got.Words, x.Words) {
			t.Fatalf("%d words, error %v", len(got.Words), err)
		}
		directions := make([]float64, dim*cols)
		draws := rand.New(rand.NewPCG(5, 0))
		for i := range directions {
			directions[i] = draws.NormFloat64()
		}
		for i := range rows {
			var products []float64
			for k := range cols {
				p := 0.0
				for l, v := range x.Row(i) {
					p += float64(v) * directions[l*cols+k]
				}
				products = append(products, p)
			}
			size := func(k int) float64 {
				if nonnegative {
					return products[k]
				}
				return math.Abs(products[k])
			}
			order := make([]int32, cols)
			for k := range order {
				order[k] = int32(k)
			}
			slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(size(int(b)), size(int(a))) })
			want := order[:codes.Ptr[i+1]-codes.Ptr[i]]
			want = slices.DeleteFunc(want, func(k int32) bool { return size(int(k)) <= 0 })
			slices.Sort(want)
			index, value := got.Row(i)
			if !slices.Equal(index, want) {
				t.Fatalf("row %d: %v, want %v", i, index, want)
			}
			for j, k := range index {
				if math.Abs(float64(value[j])-products[k]) > 1e-4 { // float32
					t.Fatalf("row %d, column %d: %v, want %v", i, k, value[j], products[k])
				}
			}
		}
	}
}

func TestRandomProjectionStops(t *testing.T) {
	const rows = 3 * chunk
	x := &vectors.Dense{Words: numberedWords(rows), Dim: 2, Data: make([]float32, 2*rows)}
	if _, err := RandomProjection(doneAfter(2), x, &randomCodes(1, rows, 5, .2).CSR, false, 1); err != context.Canceled {
		t.Error(err)
	}
}

func TestSmallest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		values := make([]float32, 1+rng.IntN(40))
		for i := range values {
			values[i] = float32(rng.IntN(12)) // with ties
		}
		sorted := slices.Sorted(slices.Values(values))
		n := rng.IntN(len(values))
		if got := smallest(slices.Clone(values), n); got != sorted[n] {
			t.Fatalf("rank %d of %v: %v", n, values, got)
		}
	}
}

func TestFromDense(t *testing.T) {
	x := &vectors.Dense{Words: []string{"a", "b", "c"}, Dim: 2, Data: []float32{1, 0, 0, 0, -2, 3}}
	got := FromDense(x)
	want := &vectors.Sparse{Words: x.Words, CSR: vectors.CSR{Rows: 3, Cols: 2, Ptr: []int64{0, 1, 1, 3}, Index: []int32{0, 0, 1}, Value: []float32{1, -2, 3}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want = &vectors.Sparse{Words: []string{"c", "a"}, CSR: vectors.CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 2, 3}, Index: []int32{0, 1, 0}, Value: []float32{-2, 3, 1}}}
	if got := SelectRows(got, []int{2, 0}); !reflect.DeepEqual(got, want) {
		t.Errorf("rows 2 and 0: %v", got)
	}
}
