package screen

import (
	"strings"
	"unicode/utf8"

	"sallyport/cmd/sallyport/terminal"
)

// maxPrompt bounds what is typed, in bytes; maxRecalled, how many commands are recalled.
const (
	maxPrompt   = 4096
	maxRecalled = 200
)

// prompt is a line that is being typed, behind : or /.
type prompt struct {
	sign byte // 0: none is open
	text string

	recalled []string // commands, oldest first
	at       int      // the one that is shown; len(recalled) is none
	offers   []string // completions that can be gone through
	offer    int
}

func (p *prompt) open(sign byte) {
	p.sign, p.text, p.at, p.offers = sign, "", len(p.recalled), nil
}

func (p *prompt) close() { p.sign, p.text, p.offers = 0, "", nil }

// add takes what was typed or pasted; only what is plainly visible.
func (p *prompt) add(text string) {
	for _, r := range text {
		if r != utf8.RuneError && terminal.Visible(r) && len(p.text) < maxPrompt {
			p.text += string(r)
		}
	}
	p.offers = nil
}

// rub takes the last character away, and closes an empty prompt.
func (p *prompt) rub() {
	if p.text == "" {
		p.close()
		return
	}
	_, size := utf8.DecodeLastRuneInString(p.text)
	p.text, p.offers = p.text[:len(p.text)-size], nil
}

// word takes the last word away.
func (p *prompt) word() {
	trimmed := strings.TrimRight(p.text, " ")
	p.text, p.offers = trimmed[:strings.LastIndex(trimmed, " ")+1], nil
}

// recall goes through the commands before.
func (p *prompt) recall(by int) {
	at := p.at + by
	if p.sign != ':' || at < 0 || at > len(p.recalled) {
		return
	}
	p.at, p.text, p.offers = at, "", nil
	if at < len(p.recalled) {
		p.text = p.recalled[at]
	}
}

// remember keeps a command to recall, if it is not the one before.
func (p *prompt) remember(line string) bool {
	if n := len(p.recalled); line == "" || n > 0 && p.recalled[n-1] == line {
		return false
	}
	p.recalled = append(p.recalled, line)
	if len(p.recalled) > maxRecalled {
		p.recalled = p.recalled[1:]
	}
	return true
}

// complete goes through what the line can become.
func (p *prompt) complete(offers func(string) []string) {
	if p.sign != ':' {
		return
	}
	if p.offers == nil {
		p.offers, p.offer = offers(p.text), -1
	}
	if len(p.offers) == 0 {
		p.offers = nil
		return
	}
	p.offer = (p.offer + 1) % len(p.offers)
	p.text = p.offers[p.offer]
}
