package picture

import (
	"fmt"
	"strings"
)

// tone is a colour in both schemes, as #rrggbb.
type tone struct{ light, dark string }

// The tones. Text is at least 4.5:1 against what it stands on, lines and areas that
// carry meaning at least 3:1 (WCAG 2.2, 1.4.3 and 1.4.11); a test computes both.
var (
	paper  = tone{"#ffffff", "#14171a"}
	panel  = tone{"#f1f3f6", "#20252b"}
	ink    = tone{"#1a1d21", "#eceff2"}
	soft   = tone{"#525a64", "#aab3bd"}
	faint  = tone{"#868d96", "#737c86"}
	hair   = tone{"#d5d9de", "#363c44"} // decoration: bands and grid lines
	accent = tone{"#0b57d0", "#7ab7ff"}
	lit    = tone{"#dbe8fd", "#123a6b"}
	good   = tone{"#1a7f37", "#4cc26b"}
	no     = tone{"#9a6700", "#e0a526"}
	bad    = tone{"#c22b2b", "#ff7b72"}
	doubt  = tone{"#8250df", "#c297ff"}
	away   = tone{"#57606a", "#9aa4af"}
	pends  = tone{"#0a66b8", "#6cb6ff"}
)

// class is a rule of the style sheet, and the same as attributes for whoever drops style
// sheets: light colours on their own ground.
type class struct {
	name         string
	fill, stroke *tone
	width        float64
	dash         string
	size         float64 // of text, in units of the picture
	bold         bool
	sans         bool
}

// The classes.
var (
	cPaper   = class{name: "paper", fill: &paper}
	cPanel   = class{name: "panel", fill: &panel}
	cBand    = class{name: "band", fill: &hair}
	cGrid    = class{name: "grid", stroke: &hair, width: 1}
	cTear    = class{name: "tear", stroke: &soft, width: 1, dash: "2 3"}
	cTitle   = class{name: "title", fill: &ink, size: 18, bold: true, sans: true}
	cHead    = class{name: "head", fill: &ink, size: 12.5, bold: true, sans: true}
	cText    = class{name: "text", fill: &ink, size: 12}
	cSoft    = class{name: "soft", fill: &soft, size: 11.5}
	cSmall   = class{name: "small", fill: &soft, size: 11}
	cBox     = class{name: "box", fill: &panel, stroke: &faint, width: 1.2}
	cBeen    = class{name: "been", fill: &panel, stroke: &ink, width: 1.6}
	cNow     = class{name: "now", fill: &lit, stroke: &accent, width: 3}
	cInner   = class{name: "inner", stroke: &faint, width: 1}
	cName    = class{name: "name", fill: &ink, size: 13, bold: true}
	cHere    = class{name: "here", fill: &accent, size: 11, bold: true}
	cWay     = class{name: "way", stroke: &faint, width: 1.1, dash: "3 3"}
	cTaken   = class{name: "taken", stroke: &ink, width: 1.8}
	cLast    = class{name: "last", stroke: &accent, width: 2.6}
	cTip     = class{name: "tip", fill: &faint}
	cTipBeen = class{name: "tipbeen", fill: &ink}
	cTipLast = class{name: "tiplast", fill: &accent}
	cRow     = class{name: "row", fill: &soft, size: 11.5}
	cRowBeen = class{name: "rowbeen", fill: &ink, size: 11.5, bold: true}
	cRowLast = class{name: "rowlast", fill: &accent, size: 11.5, bold: true}
	cWork    = class{name: "work", fill: &accent}
	cWait    = class{name: "wait", fill: &away}
	cOpen    = class{name: "open", stroke: &accent, width: 1.5, dash: "3 2"}
	cSpan    = class{name: "span", stroke: &faint, width: 1.4}
	cMark    = class{name: "mark", fill: &ink}
	cRing    = class{name: "ring", stroke: &ink, width: 1.6}
	cGauge   = class{name: "gauge", fill: &accent}
	cFrame   = class{name: "frame", fill: &panel, stroke: &faint, width: 1}
	cWhite   = class{name: "cut", stroke: &paper, width: 1.6}
	cDot     = class{name: "dot", fill: &paper}
)

// classes are all of them, in the order of the style sheet.
var classes = []class{
	cPaper, cPanel, cBand, cGrid, cTear, cTitle, cHead, cText, cSoft, cSmall, cBox, cBeen, cNow, cInner, cName, cHere, cWay,
	cTaken, cLast, cTip, cTipBeen, cTipLast, cRow, cRowBeen, cRowLast, cWork, cWait, cOpen, cSpan, cMark, cRing, cGauge, cFrame, cWhite, cDot,
}

const (
	mono = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
	sans = "system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans','DejaVu Sans',sans-serif"
)

// outcome is what became of a call, told apart by colour, by pattern and by mark.
type outcome int

const (
	wentWell outcome = iota
	rejected
	failed
	unknown
	unavailable
	waiting
	unfinished
	outcomes // how many there are
)

// look is how an outcome is drawn: a colour, what is cut out of it, and a mark in a box of
// ten by ten.
type look struct {
	word    string
	tone    *tone
	pattern string // path within a tile of eight by eight, in the colour of the paper
	sign    string // path of lines
}

var looks = [outcomes]look{
	wentWell:    {"ok", &good, "", "M1 5.5L4 8.5L9 1.5"},
	rejected:    {"rejected", &no, "M-2 2L2-2M0 8L8 0M6 10L10 6", "M1.2 5a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0M2.4 7.6L7.6 2.4"},
	failed:      {"failed", &bad, "M0 0L8 8M0 8L8 0", "M1.5 1.5L8.5 8.5M1.5 8.5L8.5 1.5"},
	unknown:     {"unknown", &doubt, "M2 1v2M6 5v2", "M2 3.2C2 .6 8 .6 8 3.2C8 5 5 4.8 5 6.8M5 8.4V9.4"},
	unavailable: {"unavailable", &away, "M2 0V8M6 0V8", "M1 5H9"},
	waiting:     {"waiting", &pends, "M0 2H8M0 6H8", "M1.2 5a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0M5 2.6V5.2L7 6.4"},
	unfinished:  {"not finished", &away, "M0 4H4M4 0V8", "M1 5H2M4.5 5H5.5M8 5H9"},
}

// css is the style sheet that every picture shares. Where the reader prefers dark, the
// same classes have the dark tones.
func css() string {
	var light, dark strings.Builder
	for _, c := range classes {
		light.WriteString(c.rule(func(t *tone) string { return t.light }, true))
		dark.WriteString(c.rule(func(t *tone) string { return t.dark }, false))
	}
	for o, l := range looks {
		for _, scheme := range []struct {
			to     *strings.Builder
			colour string
		}{{&light, l.tone.light}, {&dark, l.tone.dark}} {
			fmt.Fprintf(scheme.to, ".f%d{fill:%s}.s%d{stroke:%s}", o, scheme.colour, o, scheme.colour)
		}
	}
	return ":root{color-scheme:light dark}" + light.String() + "@media(prefers-color-scheme:dark){" + dark.String() + "}"
}

// rule is the class as CSS; whole, or only its colours.
func (c class) rule(of func(*tone) string, whole bool) string {
	var b strings.Builder
	if c.fill != nil {
		fmt.Fprintf(&b, "fill:%s;", of(c.fill))
	} else if whole {
		b.WriteString("fill:none;")
	}
	if c.stroke != nil {
		fmt.Fprintf(&b, "stroke:%s;", of(c.stroke))
	}
	if whole && c.stroke != nil {
		fmt.Fprintf(&b, "stroke-width:%s;", number(c.width))
		if c.dash != "" {
			fmt.Fprintf(&b, "stroke-dasharray:%s;", c.dash)
		}
	}
	if whole && c.size > 0 {
		fmt.Fprintf(&b, "font:%s%spx %s;", map[bool]string{true: "600 "}[c.bold], number(c.size), map[bool]string{true: sans, false: mono}[c.sans])
	}
	return "." + c.name + "{" + strings.TrimSuffix(b.String(), ";") + "}"
}

// attributes are the class for an element: its name, and the light colours for readers
// that drop style sheets.
func (c class) attributes() string {
	fill := "none"
	if c.fill != nil {
		fill = c.fill.light
	}
	a := fmt.Sprintf(` class="%s" fill="%s"`, c.name, fill)
	if c.stroke != nil {
		a += fmt.Sprintf(` stroke="%s"`, c.stroke.light)
	}
	if c.size > 0 {
		a += fmt.Sprintf(` font-size="%s"`, number(c.size))
		if !c.sans {
			a += ` font-family="monospace"`
		} else {
			a += ` font-family="sans-serif"`
		}
	}
	return a
}

// letter is the width of a letter of the class, at most.
func (c class) letter() float64 {
	if c.bold && c.sans {
		return c.size * 0.62
	}
	return c.size * 0.605
}
