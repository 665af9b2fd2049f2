package picture

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxBytes bounds a picture of any run, in bytes.
const MaxBytes = 300_000

// Size is how wide a picture is meant to be.
type Size int

// The sizes. In each the text has the same size on the screen: a small picture is laid
// out anew, not shrunk.
const (
	Normal Size = iota // 900 pixels: a page
	Small              // 400 pixels: a telephone, a column
	Wide               // 1280 pixels: a screen
)

// Sizes lists the sizes by name.
var Sizes = map[string]Size{"small": Small, "normal": Normal, "wide": Wide}

// width is in units of the picture, which are pixels at its natural size.
func (s Size) width() float64 { return [...]float64{Normal: 900, Small: 400, Wide: 1280}[s] }

// id begins the ids within a picture, so that one page can hold several.
func (s Size) id() string { return [...]string{Normal: "n", Small: "s", Wide: "w"}[s] }

// canvas is a picture being drawn. It grows downwards.
type canvas struct {
	b    strings.Builder
	size Size
	used [outcomes]bool // patterns that were drawn with
}

// number is a coordinate: one digit behind the point is a tenth of a pixel.
func number(x float64) string {
	return strconv.FormatFloat(math.Round(x*10)/10+0, 'f', -1, 64)
}

var reserved = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// markup makes text, whoever wrote it, fit to stand between tags and in attributes. It
// must be [plain] or our own.
func markup(text string) string { return reserved.Replace(text) }

// hint is what a pointer that rests on an element is told, and a reader of the file.
func hint(text string) string {
	if text == "" {
		return ""
	}
	return "<title>" + markup(text) + "</title>"
}

func (c *canvas) rect(x, y, w, h, round float64, k class, says string) {
	c.element("rect", fmt.Sprintf(`x="%s" y="%s" width="%s" height="%s"`, number(x), number(y), number(w), number(h))+rounded(round)+k.attributes(), says)
}

func rounded(r float64) string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf(` rx="%s"`, number(r))
}

// bar is the rectangle of an outcome.
func (c *canvas) bar(x, y, w, h float64, o outcome, says string) {
	c.element("rect", fmt.Sprintf(`x="%s" y="%s" width="%s" height="%s" rx="2"`, number(x), number(y), number(w), number(h))+c.filled(o), says)
}

// filled is the colour and pattern of an outcome.
func (c *canvas) filled(o outcome) string {
	if looks[o].pattern == "" {
		return fmt.Sprintf(` class="f%d" fill="%s"`, o, looks[o].tone.light)
	}
	c.used[o] = true
	return fmt.Sprintf(` fill="url(#%s%d)"`, c.size.id(), o)
}

// sign is the mark of an outcome, ten by ten, with its upper left corner at x and y.
func (c *canvas) sign(x, y float64, o outcome, says string) {
	c.element("path", fmt.Sprintf(`d="%s" transform="translate(%s %s)" class="s%d" fill="none" stroke="%s" stroke-width="2" stroke-linecap="round"`,
		looks[o].sign, number(x), number(y), o, looks[o].tone.light), says)
}

func (c *canvas) path(d string, k class, says string) {
	c.element("path", `d="`+d+`"`+k.attributes(), says)
}

func (c *canvas) line(x1, y1, x2, y2 float64, k class) {
	c.path(fmt.Sprintf("M%s %sL%s %s", number(x1), number(y1), number(x2), number(y2)), k, "")
}

// anchor is to which side of its place a text stands.
type anchor string

const (
	start  anchor = ""
	middle anchor = ` text-anchor="middle"`
	end    anchor = ` text-anchor="end"`
)

// text writes one line with its base line at y.
func (c *canvas) text(x, y float64, k class, a anchor, text string) {
	fmt.Fprintf(&c.b, `<text x="%s" y="%s"%s%s>%s</text>`+"\n", number(x), number(y), a, k.attributes(), markup(text))
}

// fit writes text that is cut to a width; the hint holds all of it.
func (c *canvas) fit(x, y, width float64, k class, a anchor, text string) {
	short := cut(text, int(width/k.letter()))
	if short == text {
		c.text(x, y, k, a, text)
		return
	}
	fmt.Fprintf(&c.b, `<text x="%s" y="%s"%s%s>%s%s</text>`+"\n", number(x), number(y), a, k.attributes(), hint(text), markup(short))
}

// wrapped writes words in as many lines as a width needs, and returns the base line of
// the last.
func (c *canvas) wrapped(x, y, width, lead float64, k class, text string) float64 {
	most := int(width / k.letter())
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && cells(line)+1+cells(word) > most {
			c.text(x, y, k, start, line)
			y, line = y+lead, ""
		}
		if line != "" {
			line += " "
		}
		line += cut(word, most)
	}
	c.text(x, y, k, start, line)
	return y
}

func (c *canvas) element(name, attributes, says string) {
	if says == "" {
		fmt.Fprintf(&c.b, "<%s %s/>\n", name, attributes)
		return
	}
	fmt.Fprintf(&c.b, "<%s %s>%s</%s>\n", name, attributes, hint(says), name)
}

// picture is the whole file: what was drawn, on its own ground, with a name and a
// description for those who do not see it. Within a page the page has the style sheet.
func (c *canvas) picture(height float64, title, desc string, alone bool) string {
	var b strings.Builder
	id, w, h := c.size.id(), number(c.size.width()), number(math.Ceil(height))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="%st %sd">`+"\n", w, h, w, h, id, id)
	fmt.Fprintf(&b, "<title id=\"%st\">%s</title>\n<desc id=\"%sd\">%s</desc>\n", id, markup(title), id, markup(desc))
	if alone {
		b.WriteString("<style>" + css() + "</style>\n")
	}
	b.WriteString(c.patterns())
	fmt.Fprintf(&b, `<rect width="%s" height="%s"%s/>`+"\n", w, h, cPaper.attributes())
	return b.String() + c.b.String() + "</svg>\n"
}

// patterns are the tiles that the picture fills bars with.
func (c *canvas) patterns() string {
	var b strings.Builder
	for o, used := range c.used {
		if used {
			fmt.Fprintf(&b, `<pattern id="%s%d" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" class="f%d" fill="%s"/><path d="%s"%s stroke-width="1.6"/></pattern>`+"\n",
				c.size.id(), o, o, looks[o].tone.light, looks[o].pattern, cWhite.attributes())
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "<defs>\n" + b.String() + "</defs>\n"
}
