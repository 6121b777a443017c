package dates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"overcomplete/testonly"
)

// A date of ISO 8601 is the day that it names, with any time and offset. Other texts aren't dates.
func TestParse(t *testing.T) {
	for value, want := range map[string]int32{
		"1970-01-01": 0, "1969-12-31": -1, "2000-03-01": 11017, "2024-02-29": 19782, "0000-01-01": -719528, "9999-12-31": 2932896, "2262-04-12": 106752,
		"1970-01-01T00:00": 0, "1970-01-01 23:59:59": 0, "1970-01-01t23:59:60z": 0, "1970-01-01T24:00:00Z": 0, "1970-01-02T10:11:12.123456789123Z": 1,
		"1970-01-02T10:11:12,5+05:30": 1, "1970-01-02 23:00-05": 1, "1970-01-02 10:11:12+0200": 1, "1970-01-02 10:11:12 UTC": 1, "1970-01-02 10:11:12 +02:00": 1,
		"1970-01-02T00:30:00+14:00": 1, "": None,
	} {
		got, err := Parse([]string{"1970-01-01", value})
		if err != nil || got[1] != want {
			t.Errorf("%q: %d, want %d, error %v", value, got, want, err)
		}
	}
	for _, value := range []string{"2024", "2024-03", "2024-3-5", "20240305", "05.03.2024", "2023-02-29", "2024-00-01", "2024-13-01", "2024-01-00", "2024-01-32", "24-01-01", "+2024-01-01", "-001-01-01",
		"2024-01-01T", "2024-01-01 ", " 2024-01-01", "2024-01-01T10", "2024-01-01T25:00", "2024-01-01T10:60", "2024-01-01T10:00:61", "2024-01-01T10:00:00.", "2024-01-01T10:00:00.5x", "2024-01-01T10:00+", "2024-01-01T10:00+1", "2024-01-01T10:00+01:", "2024-01-01T10:00+24:00", "2024-01-01T10:00ZZ",
		"2024-01-01Z", "2024-01-01 UTC", "2024-01-01 10:00 CET", "２０２４-01-01", "NaT", "2024-01-01\n", "2024\x0001-01"} {
		if _, err := Parse([]string{"", "2024-01-01", value, value}); err == nil || !strings.HasPrefix(err.Error(), "row 3: not a date") {
			t.Errorf("%q: error %v", value, err)
		}
	}
	if _, err := Parse([]string{"", " \t"}); err == nil || err.Error() != "no dates: all 2 values are empty" {
		t.Error(err)
	}
	if _, err := Parse(nil); err == nil {
		t.Error("an empty column has dates")
	}
}

// Each day from year 0 to 2799 is parsed. The number of its period increases by one on the first day of a period, by the
// calendar of package time, and on no other day.
func TestCalendar(t *testing.T) {
	at := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	last := make([]int, len(units))
	for day := int32(-719528); at.Year() < 2800; day++ {
		if got, ok := parse(at.Format(time.DateOnly)); !ok || got != day {
			t.Fatalf("%v is day %d, want %d, %v", at, got, day, ok)
		}
		begins := []bool{true, at.Weekday() == time.Monday, at.Day() == 1, at.Day() == 1 && at.Month()%3 == 1, at.YearDay() == 1, at.YearDay() == 1 && at.Year()%10 == 0, at.YearDay() == 1 && at.Year()%100 == 0}
		for unit, begin := range begins {
			n := ordinal(day, unit)
			if day > -719528 && (n != last[unit]+1 || !begin) && (n != last[unit] || begin) {
				t.Fatalf("%v: %s %d after %d", at, units[unit], n, last[unit])
			}
			last[unit] = n
		}
		at = at.AddDate(0, 0, 1)
	}
	for want, unit := range map[string]string{"2024-03-05": "day", "2024-03-04": "week", "2024-03": "month", "2024-Q1": "quarter", "2024": "year", "2020s": "decade", "2000–2099": "century"} {
		days, _ := Parse([]string{"2024-03-05"})
		if s, err := DivideBy(days, unit); err != nil || len(s.Periods) != 1 || s.Periods[0].Label != want {
			t.Errorf("%s: %v, want %s, error %v", unit, s.Periods, want, err)
		}
	}
}

// describe shows the periods of a series with their counts, and gaps as dots.
func describe(s Series) string {
	text := s.Unit + ":"
	for _, p := range s.Periods {
		if p.AfterGap {
			text += " …"
		}
		text += fmt.Sprintf(" %s=%d", p.Label, p.Count)
	}
	return text
}

// The span of the dates determines the unit. Empty periods are listed. Long gaps are left out only if there are too many
// periods.
func TestDivide(t *testing.T) {
	for _, c := range []struct {
		dates, want string
	}{
		{"2024-03-05", "day: 2024-03-05=1"},
		{"2024-03-05 2024-03-02 2024-03-05", "day: 2024-03-02=1 2024-03-03=0 2024-03-04=0 2024-03-05=2"},
		{"2023-12-30 2024-01-17", "week: 2023-12-25=1 2024-01-01=0 2024-01-08=0 2024-01-15=1"},
		{"2023-11-30 2024-01-17 2024-03-02", "month: 2023-11=1 2023-12=0 2024-01=1 2024-02=0 2024-03=1"},
		{"1969-02-28 1970-01-01", "quarter: 1969-Q1=1 1969-Q2=0 1969-Q3=0 1969-Q4=0 1970-Q1=1"},
		{"0999-01-01 1003-01-01", "year: 0999=1 1000=0 1001=0 1002=0 1003=1"},
		{"1981-01-01 2003-01-01", "decade: 1980s=1 1990s=0 2000s=1"},
		{"1781-01-01 2003-01-01", "century: 1700–1799=1 1800–1899=0 1900–1999=0 2000–2099=1"},
	} {
		days, err := Parse(strings.Fields(c.dates))
		testonly.Must(t, err)
		if got := describe(Divide(days, 6, 8)); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.dates, got, c.want)
		}
	}
	// One wrong date among thirty doesn't change the unit.
	dates := []string{"9999-12-31"}
	for i := range 29 {
		dates = append(dates, fmt.Sprintf("2024-02-%02d", 1+i))
	}
	days, _ := Parse(dates)
	if s := Divide(days, 30, 40); s.Unit != "day" || len(s.Periods) != 30 || s.Periods[29] != (Period{"9999-12-31", 1, true}) || s.Of[0] != 29 || s.Of[29] != 28 {
		t.Errorf("%s, of %d", describe(s), s.Of)
	}
}

// A limit holds for all periods, including a few early ones.
func TestDivideLimit(t *testing.T) {
	column := []string{"2007-05-01", "2008-05-01"}
	for i := range 100 {
		column = append(column, fmt.Sprintf("%d-05-01", 2010+i%9))
	}
	days, _ := Parse(column)
	if s := Divide(days, 10, 13); s.Unit != "year" || len(s.Periods) != 12 {
		t.Error(describe(s))
	}
	if s := Divide(days, 10, 11); describe(s) != "decade: 2000s=2 2010s=100" {
		t.Error(describe(s))
	}
}

func TestMostly(t *testing.T) {
	for column, want := range map[string]bool{"2024-03-05,NaT,2024-03-06,,,": true, "2024-03-05,NaT": false, ",,": false} {
		if Mostly(strings.Split(column, ",")) != want {
			t.Errorf("%s: want %v", column, want)
		}
	}
}

// DivideBy refuses unknown units and long series, except if most periods are empty.
func TestDivideBy(t *testing.T) {
	days := make([]int32, 3000)
	for i := range days {
		days[i] = int32(i)
	}
	if _, err := DivideBy(days, "day"); err == nil || !strings.Contains(err.Error(), "too many periods of a day (got 3000, want at most 1000)") {
		t.Error(err)
	}
	if s, err := DivideBy(days, "week"); err != nil || len(s.Periods) != 429 {
		t.Errorf("%d weeks, %v", len(s.Periods), err)
	}
	if _, err := DivideBy(days, "fortnight"); err == nil || !strings.Contains(err.Error(), "want one of day, week, month, quarter, year, decade, century") {
		t.Error(err)
	}
	if s, err := DivideBy([]int32{0, 2_000_000, None}, "day"); err != nil || describe(s) != "day: 1970-01-01=1 … 7445-10-25=1" {
		t.Error(describe(s), err)
	}
}
