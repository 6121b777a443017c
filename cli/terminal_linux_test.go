package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
	"unsafe"

	"overcomplete/model"
	"overcomplete/testonly/clitest"
)

// draw returns what a program writes to a terminal of the given width.
func draw(t *testing.T, width int, program func(tty *os.File)) string {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	defer screen.Close()
	control := func(request uintptr, argument unsafe.Pointer) {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(argument)); e != 0 {
			t.Skipf("no terminal: %v", e)
		}
	}
	var locked, number int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := [4]uint16{24, uint16(width)} // rows, columns
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	written := make(chan string)
	go func() {
		b, _ := io.ReadAll(screen) // fails when the other end is closed
		written <- string(b)
	}()
	program(tty)
	tty.Close()
	return <-written
}

// The report follows on a clean line, even if the bar wasn't full.
func TestProgressBarIsRemoved(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	written := draw(t, 80, func(tty *os.File) {
		var stdout strings.Builder
		cmd := dir.Command(strings.Fields("paper train in.txt -o model --authors-stop --device cpu")...)
		cmd.Stdout, cmd.Stderr = &stdout, tty
		if err := cmd.Run(); err != nil || !strings.HasPrefix(stdout.String(), "model: ") {
			t.Errorf("%v, standard output %q", err, stdout.String())
		}
	})
	if !strings.Contains(written, "] epoch 1/50") || !strings.HasSuffix(written, "\x1b[2K\r") {
		t.Errorf("the terminal gets %q", written)
	}
}

// The bar stays on one line for a description of any length, because a wrapped line can't be redrawn.
func TestProgressBarFits(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{44: "s] epoch 12/20 ", 76: "s] epoch 12/20, error 0.520 ", 200: "s] epoch 12/20, error 0.520 "} {
		written := draw(t, width, func(tty *os.File) {
			const words = 117_000
			p := &progress{log: tty}
			p.start(words, 2, 20)
			p.rows(11 * 2 * words)
			p.epoch(model.Epoch{Epoch: 11, Error: 0.52, Sparsity: 0.923, Seconds: 1})
			for !strings.Contains(p.bar.drawn.String(), "epoch 12/20") { // the bar isn't redrawn at every call
				p.rows(0)
			}
		})
		for _, line := range strings.FieldsFunc(written, func(r rune) bool { return r == '\r' || r == '\n' }) {
			line = strings.NewReplacer("\x1b[2K", "", "\x1b[0K", "").Replace(line)
			if utf8.RuneCountInString(line) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if !strings.Contains(written, want) {
			t.Errorf("%d columns: the terminal gets %q, want %q", width, written, want)
		}
	}
}
