package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"overcomplete/internal/testonly/clitest"
)

// A sysCall is a system call that a traced program is about to make, about a file.
type sysCall struct {
	class   string // what it does, one of errnos, or "exit"
	path    string // of the file, in the directory of the program; "" for standard output
	process int
}

// errnos has the error that each class of calls is made to fail with.
var errnos = map[string]syscall.Errno{
	"read": syscall.EIO, "write": syscall.ENOSPC, "fsync": syscall.EIO, "close": syscall.EIO, "truncate": syscall.EIO,
	"open": syscall.EIO, "stat": syscall.EIO, "mkdir": syscall.ENOSPC, "link": syscall.EIO, "rename": syscall.EIO, "exchange": syscall.EINVAL, "unlink": syscall.EIO,
	"mmap": syscall.ENOMEM,
}

// numbers has the system calls of a class, and which of their arguments is the file: a
// number of an open file, or of a directory with a path after it.
var numbers = map[uint64]struct {
	class string
	arg   int
	path  bool
}{
	unix.SYS_READ: {"read", 0, false}, unix.SYS_PREAD64: {"read", 0, false}, unix.SYS_GETDENTS64: {"read", 0, false},
	unix.SYS_WRITE: {"write", 0, false}, unix.SYS_PWRITE64: {"write", 0, false},
	unix.SYS_COPY_FILE_RANGE: {"write", 2, false}, unix.SYS_SENDFILE: {"write", 0, false},
	unix.SYS_FSYNC: {"fsync", 0, false}, unix.SYS_FDATASYNC: {"fsync", 0, false}, unix.SYS_CLOSE: {"close", 0, false},
	unix.SYS_FTRUNCATE: {"truncate", 0, false}, unix.SYS_FSTAT: {"stat", 0, false}, unix.SYS_NEWFSTATAT: {"stat", 0, true},
	unix.SYS_OPENAT: {"open", 0, true}, unix.SYS_MKDIRAT: {"mkdir", 0, true}, unix.SYS_LINKAT: {"link", 2, true},
	unix.SYS_RENAMEAT: {"rename", 0, true}, unix.SYS_RENAMEAT2: {"rename", 0, true}, unix.SYS_UNLINKAT: {"unlink", 0, true},
	unix.SYS_MMAP: {"mmap", -1, false}, unix.SYS_EXIT_GROUP: {"exit", -1, false},
}

// kill, instead of an error, is the program's end.
const kill = ^syscall.Errno(0)

// hang is far longer than any traced command takes, on a slow machine that has other work.
const hang = 5 * time.Minute

// trace runs cmd in its directory, which must be a real path, and calls fate before each
// call of the classes above that is about a file below that directory or standard output,
// asks for memory or ends the program. A call for which fate returns an error fails with it, and is not
// made, but that a file is closed nevertheless.
func trace(t *testing.T, cmd *exec.Cmd, fate func(sysCall) syscall.Errno) (ended unix.WaitStatus, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	ended, stdout, stderr, err := traceUntil(ctx, t, cmd, fate)
	if err != nil {
		t.Fatal(err)
	}
	return ended, stdout, stderr
}

// traceUntil is trace until ctx is cancelled: then the program is killed, and the error says
// what its threads were at.
func traceUntil(ctx context.Context, t *testing.T, cmd *exec.Cmd, fate func(sysCall) syscall.Errno) (ended unix.WaitStatus, stdout, stderr string, err error) {
	t.Helper()
	runtime.LockOSThread() // only the thread that traces may
	defer runtime.UnlockOSThread()
	// Files, for a pipe would have to be read meanwhile.
	outputs := [2]*os.File{}
	for i := range outputs {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		outputs[i] = f
	}
	cmd.Stdout, cmd.Stderr = outputs[0], outputs[1]
	// A group of its own, to wait for its threads and for no other test's program.
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Skipf("no program can be traced here: %v", err)
	}
	defer cmd.Process.Release()
	leader := cmd.Process.Pid
	check := func(err error) {
		if err != nil && err != unix.ESRCH { // it may have been killed
			cmd.Process.Kill()
			t.Fatal(err)
		}
	}
	_, err = unix.Wait4(leader, &ended, unix.WALL, nil)
	check(err)
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })()
	check(unix.PtraceSetOptions(leader, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL))
	check(unix.PtraceSyscall(leader, 0))
	at := map[int]string{}            // the call that a thread is in
	result := map[int]syscall.Errno{} // that a thread's call is to have
	for {
		thread, err := unix.Wait4(-leader, &ended, unix.WALL|unix.WNOTHREAD, nil)
		check(err)
		if ended.Exited() || ended.Signaled() {
			if thread == leader { // the last one to end
				break
			}
			if ended.Exited() {
				delete(at, thread) // another may get its number
			}
			continue
		}
		var signal int
		switch {
		case ended.StopSignal() == unix.SIGTRAP|0x80: // before or after a system call
			var regs unix.PtraceRegs
			check(unix.PtraceGetRegs(thread, &regs))
			if _, after := at[thread]; after {
				delete(at, thread)
				if errno, ok := result[thread]; ok {
					delete(result, thread)
					regs.Rax = uint64(-int64(errno))
					check(unix.PtraceSetRegs(thread, &regs))
				}
				break
			}
			call, ok := fileCall(leader, &regs, cmd.Dir)
			at[thread] = strings.TrimSpace(fmt.Sprintf("system call %d %s %s", regs.Orig_rax, call.class, call.path))
			if !ok {
				break
			}
			switch errno := fate(call); errno {
			case 0:
			case kill:
				cmd.Process.Kill()
			default:
				result[thread] = errno
				if call.class != "close" {
					regs.Orig_rax = ^uint64(0) // no system call
					check(unix.PtraceSetRegs(thread, &regs))
				}
			}
			if ctx.Err() != nil { // before this call is made
				cmd.Process.Kill()
			}
		case ended.StopSignal() == unix.SIGTRAP, ended.StopSignal() == unix.SIGSTOP: // a thread has been made
		default:
			signal = int(ended.StopSignal())
		}
		check(unix.PtraceSyscall(thread, signal))
	}
	var text [2]bytes.Buffer
	for i, f := range outputs {
		f.Seek(0, 0)
		text[i].ReadFrom(f)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%s hangs; its threads are at %s", cmd, strings.Join(slices.Sorted(maps.Values(at)), ", "))
	}
	return ended, text[0].String(), text[1].String(), err
}

// A program that is traced and never ends does not keep its test from ending: the test tells
// which program that is, and what it waits for.
func TestTraceEnds(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	if err := syscall.Mkfifo(dir.Path("pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := dir.Command("top", "pipe")
	ended, _, _, err := traceUntil(ctx, t, cmd, func(c sysCall) syscall.Errno {
		if c.class == "open" && c.path == "pipe" {
			cancel()
		}
		return 0
	})
	if err == nil || !strings.Contains(err.Error(), "overcomplete top pipe hangs; its threads are at ") || !strings.Contains(err.Error(), "open pipe") || !ended.Signaled() {
		t.Errorf("%v, error %v", ended, err)
	}
}

// fileCall returns the call that a process is about to make, if it is one to look at.
func fileCall(process int, regs *unix.PtraceRegs, dir string) (call sysCall, ok bool) {
	n, ok := numbers[regs.Orig_rax]
	if !ok || n.arg < 0 {
		return sysCall{class: n.class, process: process}, ok
	}
	if regs.Orig_rax == unix.SYS_RENAMEAT2 && regs.R8 == unix.RENAME_EXCHANGE {
		n.class = "exchange"
	}
	args := [...]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10}
	file := dir
	if fd := int32(args[n.arg]); fd != unix.AT_FDCWD {
		if file, _ = os.Readlink("/proc/" + strconv.Itoa(process) + "/fd/" + strconv.Itoa(int(fd))); fd == 1 && n.class == "write" {
			return sysCall{class: n.class, process: process}, true
		}
	}
	if n.path {
		name := make([]byte, unix.PathMax)
		got, _ := unix.ProcessVMReadv(process, []unix.Iovec{{Base: &name[0], Len: uint64(len(name))}},
			[]unix.RemoteIovec{{Base: uintptr(args[n.arg+1]), Len: len(name)}}, 0)
		name, _, _ = bytes.Cut(name[:max(got, 0)], []byte{0})
		if filepath.IsAbs(string(name)) {
			file = ""
		}
		file = filepath.Join(file, string(name))
	}
	inside, ok := strings.CutPrefix(file, dir+"/")
	return sysCall{n.class, inside, process}, ok || file == dir
}
