// Package dates parses columns of dates, and groups dates into periods:
//
//	days, err := dates.Parse([]string{"2024-03-05", "", "2024-04-01T10:11:12+02:00"})
//	s := dates.Divide(days, 60, 80)        // s.Unit is "day"
//	s, err = dates.DivideBy(days, "month") // s.Periods[1].Label is "2024-04"
package dates

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

const daySeconds = 24 * 60 * 60

// None replaces the day of an empty value.
const None = -1 << 31

// Parse returns the day of each value of a column: the number of days since 1970-01-01, or [None] if the value is
// empty or white space. Values are dates of ISO 8601 from year 0 to 9999, such as 2024-03-05, optionally with a time of day and an
// offset from UTC, such as 2024-03-05T10:11:12.5+01:00 or 2024-03-05 10:11. The day is the date as it is written;
// time and offset don't change it. Parse returns an error if all values are empty, or if a value isn't a
// date. The error names the first such value.
func Parse(column []string) ([]int32, error) {
	days := make([]int32, len(column))
	found := false
	for i, value := range column {
		day, ok := parse(value)
		switch {
		case strings.TrimSpace(value) == "":
			day = None
		case !ok:
			return nil, fmt.Errorf("row %d: not a date (got %.40q, want such as 2024-03-05 or 2024-03-05T10:11:12Z)", i+1, value)
		default:
			found = true
		}
		days[i] = day
	}
	if !found {
		return nil, fmt.Errorf("no dates: all %d values are empty", len(column))
	}
	return days, nil
}

// Mostly reports whether most of the values that aren't empty are dates.
func Mostly(column []string) bool {
	balance := 0
	for _, value := range column {
		if _, ok := parse(value); ok {
			balance++
		} else if strings.TrimSpace(value) != "" {
			balance--
		}
	}
	return balance > 0
}

// timeOfDay matches a time after a date, with an optional offset from UTC. Second 60 is a leap second.
var timeOfDay = regexp.MustCompile(`^[Tt ]([01]\d|2[0-4]):[0-5]\d(:([0-5]\d|60)([.,]\d+)?)? ?(UTC)?([Zz]|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)?$`)

func parse(value string) (day int32, ok bool) {
	const n = len(time.DateOnly)
	if len(value) < n || value[4] != '-' {
		return 0, false
	}
	at, err := time.Parse(time.DateOnly, value[:n])
	return int32(at.Unix() / daySeconds), err == nil && (value[n:] == "" || timeOfDay.MatchString(value[n:]))
}

// units lists the lengths of periods, shortest first.
var units = []string{"day", "week", "month", "quarter", "year", "decade", "century"}

// months holds, by index in units, the number of months of the units from "month".
var months = []int{2: 1, 3, 12, 120, 1200}

// A Series assigns rows to periods.
type Series struct {
	Unit    string   // length of a period, such as "month"
	Periods []Period // in order of time
	Of      []int32  // for each row, the index of its period, or −1 if it has no date
}

// A Period is a day, week, month and so on.
type Period struct {
	Label    string // such as 2024-03-05, 2024-03, 2024-Q1, 2024, 2020s or 1900–1999; a week has the date of its Monday
	Count    int    // number of rows
	AfterGap bool   // whether empty periods before this one are left out
}

const (
	maxPeriods = 1000 // limit of DivideBy
	longGap    = 12   // a series with too many periods leaves out runs of more than longGap empty periods
	tail       = 0.05 // share of the earliest dates, and of the latest, that don't determine the unit
)

// Divide groups days by the shortest unit with at most max periods between the 5 % and the 95 % quantile of the days, and
// at most limit periods in all. The quantiles keep a few wrong dates from determining the unit. The series includes empty
// periods. If it would exceed max, it leaves out runs of more than twelve empty periods. Only a series of centuries
// can exceed limit; it has at most 100 periods.
func Divide(days []int32, max, limit int) Series {
	sorted := slices.DeleteFunc(slices.Sorted(slices.Values(days)), func(day int32) bool { return day == None })
	cut := int(tail * float64(len(sorted)))
	first, last := sorted[cut], sorted[len(sorted)-1-cut]
	century := len(units) - 1
	for unit := range century {
		if ordinal(last, unit)-ordinal(first, unit) >= max {
			continue
		}
		if s := divide(days, unit, max); len(s.Periods) <= limit {
			return s
		}
	}
	return divide(days, century, max)
}

// DivideBy groups days by a unit, such as "month". It returns an error if there is no such unit, or if the series would
// have more than 1,000 periods even after long gaps are left out.
func DivideBy(days []int32, unit string) (Series, error) {
	u := slices.Index(units, unit)
	if u < 0 {
		return Series{}, fmt.Errorf("no period %.40q (want one of %s)", unit, strings.Join(units, ", "))
	}
	s := divide(days, u, maxPeriods)
	if n := len(s.Periods); n > maxPeriods {
		return Series{}, fmt.Errorf("too many periods of a %s (got %d, want at most %d): choose a longer period", unit, n, maxPeriods)
	}
	return s, nil
}

// divide groups days by a unit. If there would be more than limit periods, it leaves out long runs of empty periods.
func divide(days []int32, unit, limit int) Series {
	counts := map[int]int{}   // number of rows by ordinal
	of := make(map[int32]int) // ordinal of each day
	for _, day := range days {
		if day == None {
			continue
		}
		n, known := of[day]
		if !known {
			n = ordinal(day, unit)
			of[day] = n
		}
		counts[n]++
	}
	s := Series{Unit: units[unit], Of: make([]int32, len(days))}
	used := slices.Sorted(maps.Keys(counts))
	long := used[len(used)-1]-used[0] >= limit
	place := map[int]int32{}
	for i, n := range used {
		previous := used[max(i-1, 0)]
		omit := long && n-previous > longGap+1
		for m := previous + 1; m < n && !omit; m++ {
			s.Periods = append(s.Periods, Period{Label: label(m, unit)})
		}
		s.Periods = append(s.Periods, Period{label(n, unit), counts[n], omit})
		place[n] = int32(len(s.Periods) - 1)
	}
	for i, day := range days {
		s.Of[i] = -1
		if day != None {
			s.Of[i] = place[of[day]]
		}
	}
	return s
}

// earlyWeeks exceeds the number of weeks from year 0 to 1970, so that the numbers of weeks are positive.
const earlyWeeks = 110_000

// ordinal returns the number of the period that contains a day. Numbers of successive periods are successive.
func ordinal(day int32, unit int) int {
	switch units[unit] {
	case "day":
		return int(day)
	case "week":
		return (int(day) + 3 + 7*earlyWeeks) / 7 // 1970-01-01 is a Thursday
	}
	year, month, _ := time.Unix(int64(day)*daySeconds, 0).UTC().Date()
	return (12*year + int(month) - 1) / months[unit]
}

func label(n, unit int) string {
	switch units[unit] {
	case "day":
		return time.Unix(int64(n)*daySeconds, 0).UTC().Format(time.DateOnly)
	case "week":
		return label(7*(n-earlyWeeks)-3, 0)
	case "month":
		return fmt.Sprintf("%04d-%02d", n/12, n%12+1)
	case "quarter":
		return fmt.Sprintf("%04d-Q%d", n/4, n%4+1)
	case "year":
		return fmt.Sprintf("%04d", n)
	case "decade":
		return fmt.Sprintf("%03d0s", n)
	}
	return fmt.Sprintf("%02d00–%02[1]d99", n)
}
