package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
	"unsafe"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/model"
)

// openTerminal returns both ends of a terminal of the given width: what the
// program writes to tty is read from screen.
func openTerminal(t *testing.T, width int) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	control := func(request uintptr, argument unsafe.Pointer) {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(argument)); e != 0 {
			t.Skipf("no terminal to be had: %v", e)
		}
	}
	var locked, number int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := [4]uint16{24, uint16(width)} // rows, columns
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	return screen, tty
}

// A terminal shows lines of cells. It knows the control sequences that the bar
// uses and no others.
type terminal struct {
	width  int
	lines  [][]rune // the last one has the cursor
	column int      // of the cursor; width after the last cell was written
	gone   []string // what lines were before they were drawn over or cleared
}

func (s *terminal) show(t *testing.T, text string) {
	t.Helper()
	for text != "" {
		line := s.lines[len(s.lines)-1]
		switch {
		case strings.HasPrefix(text, "\x1b[2K"):
			s.gone = append(s.gone, s.lastLine())
			copy(line, s.blank())
			text = text[len("\x1b[2K"):]
		case strings.HasPrefix(text, "\x1b[0K"):
			// Behind the last cell, the cursor still is on it.
			copy(line[min(s.column, s.width-1):], s.blank())
			text = text[len("\x1b[0K"):]
		case text[0] == '\x1b':
			t.Fatalf("unknown control sequence %.5q", text)
		case text[0] == '\n':
			s.lines = append(s.lines, s.blank())
			text = text[1:]
		case text[0] == '\r':
			s.gone = append(s.gone, s.lastLine())
			s.column = 0
			text = text[1:]
		default:
			if s.column == s.width {
				s.lines, s.column = append(s.lines, s.blank()), 0
				line = s.lines[len(s.lines)-1]
			}
			r, size := utf8.DecodeRuneInString(text)
			line[s.column] = r
			s.column++
			text = text[size:]
		}
	}
}

func (s *terminal) blank() []rune { return []rune(strings.Repeat(" ", s.width)) }

func (s *terminal) lastLine() string { return strings.TrimRight(string(s.lines[len(s.lines)-1]), " ") }

// draw returns the screen of a terminal of the given width after a program has
// written to it.
func draw(t *testing.T, width int, program func(tty *os.File)) *terminal {
	t.Helper()
	screen, tty := openTerminal(t, width)
	defer screen.Close()
	written := make(chan string)
	go func() {
		b, _ := io.ReadAll(screen) // fails when the other end is closed
		written <- string(b)
	}()
	program(tty)
	tty.Close()
	s := &terminal{width: width}
	s.lines = [][]rune{s.blank()}
	s.show(t, <-written)
	return s
}

// The report follows on a clean line, even if the bar never got to its end.
func TestProgressBarIsRemoved(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	s := draw(t, 80, func(tty *os.File) {
		var stdout strings.Builder
		cmd := dir.Command(strings.Fields("paper train in.txt -o model --authors-stop --device cpu")...)
		cmd.Stdout, cmd.Stderr = &stdout, tty
		if err := cmd.Run(); err != nil || !strings.HasPrefix(stdout.String(), "model: ") {
			t.Errorf("%v, standard output %q", err, stdout.String())
		}
	})
	if len(s.lines) != 3 || !strings.HasPrefix(string(s.lines[1]), "training on the CPU") || s.lastLine() != "" || s.column != 0 {
		t.Errorf("%d lines, the last one %q with the cursor in column %d", len(s.lines), s.lastLine(), s.column)
	}
	if !slices.ContainsFunc(s.gone, func(line string) bool { return strings.HasSuffix(line, "] epoch 1/50") }) {
		t.Errorf("there was no bar: %q", s.gone)
	}
}

// The bar stays on its line, whatever there is to say.
func TestProgressBarFits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width int
		want  string
	}{
		{44, "epoch 12/20"},
		{76, "epoch 12/20, error 0.520"},
		{200, "epoch 12/20, error 0.520"},
	} {
		s := draw(t, tt.width, func(tty *os.File) {
			const words = 117_000
			p := newProgress(tty, false, words, 2, 20)
			p.words(11 * 2 * words)
			p.epoch(model.Epoch{Epoch: 11, Error: 0.52, Sparsity: 0.923, Seconds: 1})
			for !strings.Contains(p.bar.drawn.String(), "epoch 12/20") { // it is not redrawn at every call
				p.words(0)
			}
		})
		if line := s.lastLine(); len(s.lines) != 1 || !strings.HasPrefix(line, "  55% |█") || !strings.HasSuffix(line, "s] "+tt.want) {
			t.Errorf("%d columns: the screen shows %d lines, the last %q, want %q", tt.width, len(s.lines), line, tt.want)
		}
	}
}
