package interpret

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/text"
	"overcomplete/vectors"
)

// subjects generates texts. Half of the words of a text are of its own subject. The others are words of all
// subjects, a rare word, an address, a number and, in a fifth of the texts, a signature. Each pole of a dimension is a
// subject. The texts of a subject are a group.
func subjects(subjects, each, own int) (codes *vectors.Sparse, groups []int32) {
	rng := rand.New(rand.NewPCG(1, 2))
	codes = &vectors.Sparse{Texts: &vectors.Texts{}, CSR: vectors.CSR{Cols: subjects / 2, Ptr: []int64{0}}}
	for i := range subjects * each {
		subject := i % subjects
		var words []string
		for range 4 {
			words = append(words, fmt.Sprintf("%c%cown", 'a'+subject, 'a'+rng.IntN(own)), fmt.Sprintf("%cfunction", 'a'+rng.IntN(5)))
		}
		words = append(words, fmt.Sprintf("a%d@host.org 1993 and so forth rare%d", subject, i))
		if i/subjects%5 == 0 {
			words = append(words, fmt.Sprintf("Prof Ann Other of Subject%d says bye", subject))
		}
		codes.IDs = append(codes.IDs, fmt.Sprint(i))
		codes.Texts.Add(strings.Join(words, " "), nil)
		value := float32(1 + rng.Float64())
		if subject%2 == 1 {
			value = -value
		}
		codes.AppendRow([]int32{int32(subject / 2)}, []float32{value})
		groups = append(groups, int32(subject))
	}
	return codes, groups
}

// members returns the rows of each group, given the group of each row. A row of group −1 has none.
func members(groupOf []int32) (groups [][]int32) {
	for row, g := range groupOf {
		for len(groups) <= int(g) {
			groups = append(groups, nil)
		}
		if g >= 0 {
			groups[g] = append(groups[g], int32(row))
		}
	}
	return groups
}

// Labels of groups and poles are words of their subjects, with any number of workers.
func TestLabels(t *testing.T) {
	const n, each, own = 8, 30, 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for workers := 1; workers <= 3; workers++ {
		runtime.GOMAXPROCS(workers)
		codes, groups := subjects(n, each, own)
		x := NewIndex(codes)
		groups[0] = -1
		labels, _ := x.GroupLabels(members(groups), nil, own)
		if len(labels) != n {
			t.Fatalf("%d labels, want %d", len(labels), n)
		}
		for subject := range n {
			var want []string
			for i := range own {
				want = append(want, fmt.Sprintf("%c%cown", 'a'+subject, 'a'+i))
			}
			p := Pole{subject / 2, subject%2 == 1}
			for _, got := range [][]string{labels[subject], x.Label(p), x.Words(p, own)} {
				if !slices.Equal(slices.Sorted(slices.Values(got)), want) {
					t.Errorf("subject %d: label %q, want %q", subject, got, want)
				}
			}
		}
	}
}

// A sample of many texts determines their labels. The beginning of a text describes a group or pole without
// texts in the sample.
func TestLabelsOfSample(t *testing.T) {
	const n, own = 8, 3
	codes, groups := subjects(n, 300, own)
	x := NewIndex(codes)
	x.maxSample = 150
	s := x.sample()
	alone := 1
	for slices.Contains(s.rows, alone) {
		alone++
	}
	codes.Cols++
	index, value := codes.Row(alone)
	index[0], value[0] = int32(n/2), 1 // the only row of the dimension
	x = NewIndex(codes)
	x.maxSample = 150
	if s = x.sample(); len(s.rows) != x.maxSample || slices.Contains(s.rows, alone) || !slices.IsSorted(s.rows) {
		t.Fatalf("sample of rows %d", s.rows)
	}
	groups[alone] = n
	var sampled []int32
	for _, row := range s.rows {
		sampled = append(sampled, groups[row])
	}
	small := NewIndex(SelectRows(codes, s.rows))
	name := []string{beginning(codes.Texts.Text[alone])}
	want, _ := small.GroupLabels(members(sampled), nil, own)
	want = append(want, name)
	if got, _ := x.GroupLabels(members(groups), nil, own); !reflect.DeepEqual(got, want) {
		t.Errorf("labels of groups %q, want %q", got, want)
	}
	for k := range codes.Cols {
		for _, p := range []Pole{{k, false}, {k, true}} {
			want := small.Words(p, 5)
			if p == (Pole{n / 2, false}) {
				want = name
			}
			if got := x.Words(p, 5); !slices.Equal(got, want) {
				t.Errorf("%v: %q, want %q", p, got, want)
			}
		}
	}
}

// Numbers distinguish repeated labels.
func TestDistinct(t *testing.T) {
	labels := [][]string{{"rain"}, {"rain", "sun"}, {"rain"}, nil, {"rain (2)"}, {"rain", "sun"}, {"rain"}, {"rain, sun"}, nil}
	got := fmt.Sprintf("%q", Distinct(labels))
	if want := `[["rain"] ["rain" "sun"] ["rain (2)"] [] ["rain (2) (2)"] ["rain" "sun (2)"] ["rain (3)"] ["rain, sun (3)"] []]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if labels[2][0] != "rain" || labels[5][1] != "sun" {
		t.Errorf("the argument has changed to %q", labels)
	}
}

// The beginning of a text labels a group without words. Two labels are the same only if there are no other words. No
// label contains the name of a row.
func TestLabelsOfFew(t *testing.T) {
	for _, c := range []struct {
		texts  []string
		groups []int32
		want   string
	}{
		{nil, nil, "[]"},
		{[]string{"a b"}, []int32{-1}, "[]"},
		{[]string{"", "", "one two"}, []int32{0, 0, 1}, "[[(empty)] [one two]]"},
		{[]string{"rain", "rain", "rain"}, []int32{0, 1, 1}, "[[rain] [rain]]"},
		{[]string{"rain", "rain", "sun", "sun"}, []int32{0, 2, 3, 3}, "[[rain] [] [rain] [sun]]"},
		{[]string{"ab cd ef gh", "ab cd ef gh", "1 2", "1 2"}, []int32{0, 0, 1, 1}, "[[ab cd ef] [1 2]]"},
		{[]string{"?! 3.14159 2.71828 1.41421", "", "?! 3.14159 2.71828 1.41421"}, []int32{0, 1, 2}, "[[?! 3.14159 2.71828…] [(empty)] [?! 3.14159 2.71828…]]"},
		{[]string{"日本", "日本", "🙂", "🙂🙂", "שלום", "שלום"}, []int32{0, 0, 1, 1, 2, 2}, "[[日本] [🙂] [שלום]]"},
		{[]string{strings.Repeat("long ", 1<<18) + "end", "", "one two", ""}, []int32{0, 1, 2, 1}, "[[long] [(empty)] [one two]]"},
	} {
		x := textIndex(c.texts...)
		for i := range c.texts {
			x.Codes.IDs[i] = fmt.Sprint("r", i)
		}
		labels, _ := x.GroupLabels(members(c.groups), nil, 3)
		if got := fmt.Sprint(labels); got != c.want {
			t.Errorf("%.60q in groups %d: %s, want %s", c.texts, c.groups, got, c.want)
		}
	}
	x := textIndex(slices.Repeat([]string{"the same words"}, 50)...)
	poles, labels := 0, map[string]bool{}
	for k := range x.Codes.Cols {
		for _, p := range x.Poles(k) {
			poles++
			labels[fmt.Sprint(x.Label(p))] = true
			if words := x.Words(p, maxWords); fmt.Sprint(words) != "[the same words]" {
				t.Errorf("%v: words %q", p, words)
			}
		}
	}
	if len(labels) != poles {
		t.Errorf("%d labels of %d poles", len(labels), poles)
	}
}

// Labels of texts without spaces are words of the group's subject.
func TestLabelsWithoutSpaces(t *testing.T) {
	for name, c := range map[string]struct {
		subjects [3]string
		others   string
	}{
		"Chinese":  {[3]string{"银行 贷款 利率 存款 信用卡", "足球 比赛 球队 教练 世界杯", "电影 导演 演员 剧情 纪录片"}, "的 是 了 在 我们 他们 因为 今天 一个 不 和 也 很 这个 没有"},
		"Japanese": {[3]string{"銀行 ローン 金利 預金", "サッカー 試合 監督 選手", "コンピューター 画面 ソフトウェア メモリ"}, "の は が を に です ます から した と も その これ"},
		"Thai":     {[3]string{"ธนาคาร เงินกู้ ดอกเบี้ย บัญชี", "ฟุตบอล นักเตะ ผู้จัดการ ประตู", "คอมพิวเตอร์ โปรแกรม หน้าจอ ไฟล์"}, "และ ที่ ใน เป็น ของ ไม่ ได้ มี จะ ให้ กับ"},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		others := strings.Fields(c.others)
		var texts []string
		var groups []int32
		for i := range 300 {
			own, text := strings.Fields(c.subjects[i%3]), ""
			for range 5 + rng.IntN(20) {
				if rng.IntN(3) == 0 {
					text += own[rng.IntN(len(own))]
				} else {
					text += others[rng.IntN(len(others))]
				}
			}
			texts, groups = append(texts, text), append(groups, int32(i%3))
		}
		labels, _ := textIndex(texts...).GroupLabels(members(groups), nil, 3)
		for subject, label := range labels {
			for _, word := range label {
				if !slices.Contains(strings.Fields(c.subjects[subject]), word) {
					t.Errorf("%s: %q in the label of %q", name, word, c.subjects[subject])
				}
			}
			if len(label) < 2 {
				t.Errorf("%s: the label %q of %q", name, label, c.subjects[subject])
			}
		}
	}
}

// A frequent Chinese character isn't part of a word because rare words follow it by chance, but it is part of a frequent
// word.
func TestFunctionCharacters(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var texts []string
	words := strings.Fields("银行 足球 电影 天气 老师 汽车 音乐 城市 机器 存在")
	for i := range 4000 {
		text := ""
		for range 6 {
			text += words[rng.IntN(len(words))] + strings.Repeat("在", rng.IntN(40)/39)
		}
		rare := ""
		if i%1000 == 7 {
			rare = "在悬崖"
		}
		texts = append(texts, text+rare+words[i%len(words)])
	}
	found := text.NewTerms(texts, true).Words
	for _, word := range append(words, "悬崖") {
		if !slices.Contains(found, word) {
			t.Errorf("no word %s", word)
		}
	}
	if slices.Contains(found, "在悬崖") {
		t.Error("在 is part of a word")
	}
}

// Words that are mostly adjacent are a phrase in labels, but not in a search. Other pairs of words aren't phrases.
func TestPhrases(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	words := func(text string) []string {
		words := strings.Split(text, ",")
		for range 12 {
			words = append(words, fmt.Sprintf("%cfunction", 'a'+rng.IntN(26)))
		}
		rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		return words
	}
	codes := &vectors.Sparse{Texts: new(vectors.Texts), CSR: vectors.CSR{Cols: 3, Ptr: []int64{0}}}
	var groups []int32
	for i := range 120 {
		subject := i % 3
		text := strings.Join(words([]string{"hard drive,disk", "human rights,law", "purr,whisker"}[subject]), " ")
		codes.Texts.Add(text, nil)
		codes.IDs = append(codes.IDs, fmt.Sprint(i))
		codes.AppendRow([]int32{int32(subject)}, []float32{1})
		groups = append(groups, int32(subject))
	}
	x := NewIndex(codes)
	labels, _ := x.GroupLabels(members(groups), nil, 2)
	for g, label := range labels {
		slices.Sort(label)
		if want := []string{"[disk hard drive]", "[human rights law]", "[purr whisker]"}[g]; fmt.Sprint(label) != want {
			t.Errorf("group %d: %q, want %s", g, label, want)
		}
	}
	if q := x.Search("drive hard", 9); q.Total != 40 || len(q.Unknown) != 0 {
		t.Errorf("found %d, unknown %q", q.Total, q.Unknown)
	}
	if ids := x.postings().Lookup(x.terms(), "hard d"); len(ids) != 0 {
		t.Errorf("a search finds the phrases %d", ids)
	}
}

// Labels contain the formula of a group's texts, but no names of writers, which stand beside addresses.
func TestFormulasAndNames(t *testing.T) {
	var texts []string
	var groups []int32
	for i := range 200 {
		text := fmt.Sprintf("a%d@host.org (Keith Hammerl) writes: rain%d falls %s", i, i, []string{"Keith and Ann agree", ""}[min(i%20, 1)])
		if i%2 == 1 {
			text = fmt.Sprintf("corp%d quarter shr loss cts vs profit cts mln", i)
		}
		texts, groups = append(texts, text), append(groups, int32(i%2))
	}
	labels, _ := textIndex(texts...).GroupLabels(members(groups), nil, 3)
	if fmt.Sprint(labels[0]) != "[falls]" {
		t.Errorf("posts: %q", labels[0])
	}
	if !slices.ContainsFunc(labels[1], func(word string) bool { return strings.Contains("quarter shr loss cts vs profit mln", word) }) {
		t.Errorf("news: %q", labels[1])
	}
}

// Stop words aren't in labels or descriptions, alone or in phrases.
func TestStopWords(t *testing.T) {
	codes, groups := subjects(8, 30, 3)
	x := NewIndex(codes)
	all, _ := x.GroupLabels(members(groups), nil, 3)
	for _, maxSample := range []int{maxSample, 150} {
		x := NewIndex(codes)
		x.maxSample = maxSample
		y := x.WithStopWords([]string{" " + strings.ToUpper(all[0][0]) + "\n", ""})
		got, _ := y.GroupLabels(members(groups), nil, 3)
		for _, words := range append(slices.Clone(got), y.Label(Pole{0, false}), y.Words(Pole{0, false}, 20)) {
			if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(strings.Fields(word), all[0][0]) }) || len(words) == 0 {
				t.Errorf("%q contains %s", words, all[0][0])
			}
		}
		if maxSample == 150 {
			continue
		}
		if again, _ := x.GroupLabels(members(groups), nil, 3); !slices.Equal(got[1], all[1]) || !slices.Equal(again[0], all[0]) {
			t.Errorf("other labels are %q, %q", got[1], again[0])
		}
	}
	if y := NewIndex(codes).WithStopWords([]string{"hard"}); !y.isStop("hard drive") || !y.isStop("drive hard") || y.isStop("harder") || y.isStop("drive") || y.isStop("") {
		t.Error("phrases")
	}
	if y := NewIndex(codes).WithStopWords([]string{"Hard drive"}); !y.isStop("hard drive") || y.isStop("drive hard") || y.isStop("hard") {
		t.Error("a phrase")
	}
}

// The label of a group of words consists of the words nearest to its centre.
func TestGroupLabelsOfWords(t *testing.T) {
	codes := &vectors.Sparse{IDs: []string{"far", "centre", "central", "middle", "none"}, CSR: vectors.CSR{Cols: 2, Ptr: []int64{0}}}
	for _, v := range [][]float32{{1, 0}, {3, 3}, {2, 2}, {1, 2}} {
		codes.AppendRow([]int32{0, 1}, v)
	}
	codes.AppendRow(nil, nil)
	got, _ := NewIndex(codes).GroupLabels([][]int32{{0, 1, 2, 3, 4}}, nil, 2)
	if fmt.Sprint(got) != "[[centre middle]]" {
		t.Errorf("%q", got)
	}
}

// A phrase replaces its words if its score is at least 0.9 times the lower of their scores and 0.5 times the higher.
func TestKeepPhrases(t *testing.T) {
	terms := &text.Terms{Words: []string{"hard", "drive", "hard drive"}}
	for _, tt := range []struct {
		hard, drive, phrase float64
		want                bool
	}{{1, 0.5, 0.51, true}, {1, 0.5, 0.49, false}, {0.5, 1, 0.49, false}, {0.6, 0.6, 0.55, true}, {0.6, 0.6, 0.53, false}, {0, 1, 0.9, false}} {
		candidates := []candidate{{id: 0, score: tt.hard}, {id: 1, score: tt.drive}, {id: 2, score: tt.phrase}}
		if got := len(keepPhrases(terms, candidates)) == 3; got != tt.want {
			t.Errorf("%+v: kept %t", tt, got)
		}
	}
}
