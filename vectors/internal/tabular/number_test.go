package tabular

import "testing"

func TestTypeOf(t *testing.T) {
	for want, columns := range map[Type][][]string{
		Integer: {{"1", "-20"}, {"", "3"}, {"9223372036854775807", "0"}},
		Float:   {{"1.50", "2e-3"}, {"1", "", "0.5"}},
		String: {{}, {"", ""}, {"1", "x"}, {"1", "007"}, {"1", "NaN"}, {"1", "1e999"}, {"1", "0x10"}, {"1", "+1"}, {"9223372036854775808", "1"},
			{"1", "true"}, {"2024-03-05", "2024-03-06"}},
	} {
		for _, values := range columns {
			if got := TypeOf(values); got != want {
				t.Errorf("%q: type %d, want %d", values, got, want)
			}
		}
	}
}
