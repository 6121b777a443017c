package memory

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"overcomplete/testonly"
)

// The machine's memory agrees with /proc/meminfo, which counts in units of 1024 bytes.
func TestTotal(t *testing.T) {
	info := testonly.ReadFile(t, "/proc/meminfo")
	var machine uint64
	_, err := fmt.Sscanf(string(info), "MemTotal: %d kB", &machine)
	testonly.Must(t, err)
	want := min(machine<<10, groupLimit("/"), ownLimit())
	if got, ok := Total(); !ok || got != want {
		t.Errorf("%d bytes, known: %v; want %d", got, ok, want)
	}
}

// The files have the format of the kernel's documentation of control groups.
func TestGroupLimit(t *testing.T) {
	const none = uint64(math.MaxUint64)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  uint64
	}{
		{"no control groups", nil, none},
		{"version 2, in a container", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "536870912\n",
		}, 512 << 20},
		{"version 2, without a limit", map[string]string{
			"proc/self/cgroup":                     "0::/user.slice/shell.scope\n",
			"sys/fs/cgroup/user.slice/memory.max":  "max\n",
			"sys/fs/cgroup/user.slice/shell.scope": "", // no controller here
		}, none},
		{"version 2, with a lower limit above", map[string]string{
			"proc/self/cgroup":                         "0::/jobs/job:1/step\n",
			"sys/fs/cgroup/jobs/memory.max":            "1000000\n",
			"sys/fs/cgroup/jobs/job:1/memory.max":      "max\n",
			"sys/fs/cgroup/jobs/job:1/step/memory.max": "3000000\n",
		}, 1000000},
		{"version 2, with a limit that slows down", map[string]string{
			"proc/self/cgroup":              "0::/job\n",
			"sys/fs/cgroup/job/memory.max":  "3000000\n",
			"sys/fs/cgroup/job/memory.high": "2000000\n",
		}, 2000000},
		{"version 1", map[string]string{
			"proc/self/cgroup":                                 "9:name=systemd:/\n4:cpu,memory:/job/1\n2:cpuacct:/other\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
			"sys/fs/cgroup/memory/job/1/memory.limit_in_bytes": "2000000\n",
			"sys/fs/cgroup/memory/other/memory.limit_in_bytes": "1\n",
		}, 2000000},
		{"version 1, in a container that the host knows by another name", map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/0123abcd\n0::/docker/0123abcd\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "4000000\n",
		}, 4000000},
		{"nonsense", map[string]string{"proc/self/cgroup": "\n:\n4:memory\n0::../../..\n"}, none},
	} {
		root := t.TempDir()
		for name, text := range tt.files {
			path := filepath.Join(root, name)
			testonly.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
			testonly.Must(t, os.WriteFile(path, []byte(text), 0o666))
		}
		if got := groupLimit(root); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}
