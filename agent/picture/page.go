package picture

import (
	"fmt"
	"strings"

	"sallyport/agent"
)

// Page is the timeline as one HTML file: the picture in three sizes, of which the reader's
// window shows the one that fits, and the same in tables, for those who read rather than
// look. It runs no script and loads nothing; its own policy forbids both.
func (s *Story) Page() string {
	var b strings.Builder
	title := "Timeline of run " + plain(s.run.ID)
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	b.WriteString(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>` + "\n")
	b.WriteString(`<meta name="viewport" content="width=device-width, initial-scale=1"/>` + "\n")
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s%s</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n", markup(title), css(), pageCSS(), markup(title))
	for _, size := range []Size{Small, Normal, Wide} {
		fmt.Fprintf(&b, "<figure class=\"%s\">\n%s</figure>\n", size.id(), s.timeline(size, false))
	}
	s.stateTable(&b)
	s.callTable(&b)
	s.markTable(&b)
	b.WriteString("</main>\n</body>\n</html>\n")
	return b.String()
}

// pageCSS is what the page adds to the pictures' own style.
func pageCSS() string {
	scheme := func(of func(tone) string) string {
		return fmt.Sprintf("body{background:%s;color:%s}td,th{border-bottom:1px solid %s}summary{color:%s}", of(paper), of(ink), of(hair), of(accent))
	}
	return "body{margin:0;font:14px/1.5 " + sans + "}main{max-width:1280px;margin:0 auto;padding:12px 0}" +
		"h1{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}" +
		"figure{margin:0 auto;display:none}figure svg{display:block;max-width:100%;height:auto;margin:0 auto}" +
		".s{display:block}@media(min-width:860px){.s{display:none}.n{display:block}}@media(min-width:1280px){.n{display:none}.w{display:block}}" +
		"details{margin:8px 16px;overflow-x:auto}summary{cursor:pointer;font-weight:600;padding:4px 0}" +
		"table{border-collapse:collapse;font:12.5px/1.5 " + mono + "}td,th{text-align:left;padding:3px 14px 3px 0;white-space:nowrap}" +
		scheme(func(t tone) string { return t.light }) +
		"@media(prefers-color-scheme:dark){" + scheme(func(t tone) string { return t.dark }) + "}"
}

// maxTableRows bounds a table of the page; that the rest is left out is said.
const maxTableRows = 100

// table writes rows behind a summary that a reader opens.
func table(b *strings.Builder, summary string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "<details>\n<summary>%s</summary>\n<table>\n<thead>%s</thead>\n<tbody>\n", markup(summary), line("th", head))
	for i, r := range rows {
		if i == maxTableRows {
			b.WriteString(line("td", []string{"… " + several(len(rows)-i, "more line", "more lines")}) + "\n")
			break
		}
		b.WriteString(line("td", r) + "\n")
	}
	b.WriteString("</tbody>\n</table>\n</details>\n")
}

func line(tag string, texts []string) string {
	var b strings.Builder
	b.WriteString("<tr>")
	for _, t := range texts {
		fmt.Fprintf(&b, "<%s>%s</%s>", tag, markup(cut(t, 80)), tag)
	}
	return b.String() + "</tr>"
}

func (s *Story) stateTable(b *strings.Builder) {
	var rows [][]string
	for _, st := range agent.States() {
		if n := s.visits[st]; n > 0 {
			rows = append(rows, []string{string(st), count(int64(n)), duration(s.spent[st])})
		}
	}
	table(b, "States", []string{"state", "entered", "time"}, rows)
}

func (s *Story) callTable(b *strings.Builder) {
	var rows [][]string
	for i := range s.calls {
		k := &s.calls[i]
		rows = append(rows, []string{
			fmt.Sprint(i + 1), named(k.tool), k.danger(), k.word() + k.tried(), named(k.reason), duration(k.long()), clock(k.from), count(k.first),
		})
	}
	table(b, several(len(s.calls), "call", "calls"), []string{"call", "tool", "risk", "outcome", "reason", "time", "began", "entry"}, rows)
}

func (s *Story) markTable(b *strings.Builder) {
	var rows [][]string
	for _, m := range s.marks {
		about := ""
		if m.call > 0 {
			about = fmt.Sprint(m.call)
		}
		rows = append(rows, []string{m.says, about, moment(m.at), count(m.seq)})
	}
	table(b, "Decisions and events", []string{"what", "call", "when", "entry"}, rows)
}
