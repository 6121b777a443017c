package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/input"
	"overcomplete/internal/lab/judge"
	"overcomplete/model"
)

func newIntrusionJudge() *cobra.Command {
	var output, name string
	var web bool
	cmd := &cobra.Command{
		Use:   "judge TEST.json -o ANSWERS.jsonl (--judge NAME | --web)",
		Short: "Answer a test, in the terminal or on a local web page",
		Long: `Judge asks the questions of a test and adds each answer to a file at once. Who stops
goes on with the same command. Any number of judges can answer, to one file or
several.

With --web the questions are on a page that only this machine can open, where judges
tell their names; several can answer at the same time, until the program is
interrupted.`,
		Example: `  overcomplete intrusion judge test.json -o answers.jsonl --judge ann
  overcomplete intrusion judge test.json -o answers.jsonl --web`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if web == cmd.Flags().Changed("judge") {
				return usagef("give --judge, your name, or --web")
			}
			name = strings.TrimSpace(name)
			if err := judge.CheckName(name); err != nil && !web {
				return usagef("--judge: %w", err)
			}
			test, err := input.Wait(cmd.Context(), func() (*judge.Test, error) { return judge.ReadTest(args[0]) })
			if err != nil {
				return usageError{err}
			}
			if model.Contains(output) {
				return usagef("%s: %w", output, model.ErrContained)
			}
			answers, torn, err := judge.OpenAnswers(output, test)
			if err != nil {
				return usageError{err}
			}
			if torn {
				warn(cmd.ErrOrStderr(), "%s: the last line was cut short and is removed", output)
			}
			defer answers.Close()
			if web {
				return serve(cmd.Context(), cmd.ErrOrStderr(), answers)
			}
			return ask(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), answers, name, len(test.Questions))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "", "`file` to add the answers to")
	flags.StringVar(&name, "judge", "", "`name` of who answers in the terminal")
	flags.BoolVar(&web, "web", false, "ask on a web page of this machine")
	cmd.MarkFlagRequired("output")
	return cmd
}

// ask asks all questions that are left, until the end of the input.
func ask(ctx context.Context, in io.Reader, out io.Writer, answers *judge.Answers, name string, total int) error {
	// A read from a terminal can't be interrupted: the program leaves it behind.
	lines := make(chan string)
	failed := make(chan error, 1)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
		failed <- scanner.Err()
	}()
	fmt.Fprintln(out, "Of five words, four have something in common. Type the number of the fifth; where you")
	fmt.Fprintln(out, "can't tell, guess. Type q to stop; the same command goes on.")
	for {
		q, answered := answers.Next(name)
		if q == nil {
			fmt.Fprintf(out, "All %d questions are answered. Thank you, %s.\n", total, escape.Word(name))
			return nil
		}
		fmt.Fprintf(out, "\n%d of %d\n", answered+1, total)
		for i, word := range q.Words {
			fmt.Fprintf(out, "  %d  %s\n", i+1, escape.Word(word))
		}
		chosen := 0
		for chosen == 0 {
			fmt.Fprint(out, "> ")
			var line string
			more := false
			select {
			case <-ctx.Done():
			case line, more = <-lines:
			}
			if ctx.Err() != nil {
				fmt.Fprintln(out)
				return interrupted{fmt.Sprintf("%d of %d questions are answered; the same command goes on", answered, total)}
			}
			line = strings.TrimSpace(line)
			if !more || line == "q" {
				fmt.Fprintf(out, "\n%d of %d questions are answered.\n", answered, total)
				if !more {
					return <-failed
				}
				return nil
			}
			var err error
			if chosen, err = strconv.Atoi(line); err != nil || chosen < 1 || chosen > len(q.Words) {
				fmt.Fprintf(out, "Type a number from 1 to %d, or q.\n", len(q.Words))
				chosen = 0
			}
		}
		if err := answers.Add(judge.Answer{Judge: name, Number: q.Number, Word: q.Words[chosen-1]}); err != nil {
			fmt.Fprintln(out) // the answer was on the line of the prompt
			return err
		}
	}
}

// serve serves the page until ctx is done.
func serve(ctx context.Context, stderr io.Writer, answers *judge.Answers) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	host := listener.Addr().String()
	server := &http.Server{Handler: judge.Page(answers, host), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	saved := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(saved)
		ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		server.Shutdown(ending) // waits for answers on their way
	})
	say(stderr, "the questions are on http://%s; interrupt to end", host)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	<-saved
	return nil
}
