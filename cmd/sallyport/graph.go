package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/picture"
)

// The commands that draw: graph and timeline. They read the journal and nothing else.

func (a *app) graphCommand() *cobra.Command {
	size := pictureSize{name: "normal"}
	c := &cobra.Command{
		Use: "graph [RUN]", Short: "Draw the state machine, or where a run has been", Args: atMostOneRun,
		Long: `Draw the state machine from the transition table that the runtime itself uses.
With a run, each state shows how often it was entered and for how long, each row how
often it was taken, and the state that the run is in is lit; its path is written below.

svg is one file that loads nothing, for light and dark; text is for a terminal.`,
		Annotations:       map[string]string{formatsKey: "mermaid dot svg text"},
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE: func(c *cobra.Command, args []string) error {
			var s picture.Story
			if len(args) == 1 {
				var err error
				if s, err = a.story(c.Context(), args[0]); err != nil {
					return err
				}
			}
			switch a.output {
			case formatDot:
				return a.print("%s", s.Dot())
			case formatSVG:
				return a.print("%s", s.Graph(size.size()))
			case formatText:
				return a.print("%s", s.Text())
			}
			return a.print("%s", s.Mermaid())
		},
	}
	size.flag(c)
	return c
}

func (a *app) timelineCommand() *cobra.Command {
	size := pictureSize{name: "normal"}
	c := &cobra.Command{
		Use: "timeline RUN", Short: "Draw the time of a run: states, calls, decisions, budgets", Args: oneRun,
		Long: `Draw the time that a run spent in each state, its calls with what became of each, what
people, the clock and the engine did, and how much of each budget is used. Waits are cut
out, with their true length written. It holds names, numbers and fixed words, no content.

svg is a picture; html is one page with it, which fits the window, and with tables of
the same. Both are one file, load nothing and run no script.`,
		Annotations:       map[string]string{formatsKey: "svg html"},
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.story(c.Context(), args[0])
			if err != nil {
				return err
			}
			if a.output == formatHTML {
				return a.print("%s", s.Page())
			}
			return a.print("%s", s.Timeline(size.size()))
		},
	}
	size.flag(c)
	return c
}

// story reads what the pictures of a run are drawn from.
func (a *app) story(ctx context.Context, id string) (s picture.Story, err error) {
	err = a.reading(func(e agent.Engine) (err error) {
		s, err = picture.Read(e.Journal(ctx, id, 1, false)) // its errors name the run
		return err
	})
	return s, err
}

// pictureSize is the value of --size.
type pictureSize struct{ name string }

var pictureSizes = []string{"small", "normal", "wide"}

func (p *pictureSize) flag(c *cobra.Command) {
	c.Flags().Var(p, "size", "width of an svg: "+strings.Join(pictureSizes, ", "))
}

func (p *pictureSize) size() picture.Size { return picture.Sizes[p.name] }

// Set implements the flag.
func (p *pictureSize) Set(s string) error {
	if !slices.Contains(pictureSizes, s) {
		return fmt.Errorf("there is no size %q; there are %s", s, strings.Join(pictureSizes, ", "))
	}
	p.name = s
	return nil
}

// String implements the flag.
func (p *pictureSize) String() string { return p.name }

// Type implements the flag.
func (p *pictureSize) Type() string { return "SIZE" }
