package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// hostile are names and reasons as nobody sane would choose them.
var hostile = []string{
	`</text><script>alert(1)</script>`, `"><image href="http://evil.example/x.png"/>`, "line\nbreak\ttab\x00nul\x1b[31m",
	"\u202egnp.exe\u202c", "zero\u200bwidth\ufeff\U000e0041", "עברית", "漢字かな", "é\u0301\u0301\u0301\u0301\u0301\u0301", "]]>&amp;&#0;<!--", "\xff\xfe", strings.Repeat("W", 300),
}

// attacked is a run in which whatever somebody else names is hostile.
func attacked(t testing.TB, name string) *desk {
	tool := "desk__" + name
	d := begin(t, "attacked", func(s *agent.Spec) {
		s.Model = name
		s.Tools[0].Name, s.Tools[0].Remote = tool, name
		s.Tools[1].Name = "write" + name
	})
	d.proposes(tool, "write"+name)
	d.after(1).checked().after(1e9).came(agent.StatusFailed, agent.ClassToolError, name).told()
	d.waits()
	d.after(60e9).take(agent.FromOutside(agent.Refuse{Candidate: d.run.Call.Candidate.ID}, name, d.now))
	d.told()
	d.note(agent.FromOutside(enginetest.Sign(d.run0(), "mallory", d.now), name, d.now))
	return d.after(1e9).node(agent.Unreached{Reason: name, Final: true})
}

// run0 is a run that waits for an approval: any.
func (d *desk) run0() agent.Run { return parked(d.t).run }

func TestPictures_HostileNamesAreEscaped(t *testing.T) {
	for i, name := range hostile {
		s := attacked(t, name).story()
		for what, text := range everything(s) {
			for _, r := range text {
				if r != '\n' && r != '\t' && (!unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Bidi_Control, r)) {
					t.Errorf("%s of name %d holds U+%04X", what, i, r)
				}
			}
			graphic := strings.HasPrefix(what, "svg") || what == "html"
			if !graphic {
				continue
			}
			if strings.Contains(text, "<script") || strings.Contains(text, "<image") || strings.Contains(text, "<!--") {
				t.Errorf("%s of name %d holds what was to be text", what, i)
			}
			wellFormed(t, what, text)
		}
		if got := texts(t, s.Page()); !strings.Contains(got, named("desk__"+string([]rune(name)))) {
			t.Errorf("the page does not name tool %d, %q", i, plain(name))
		}
	}
}

// everything is all that can be drawn of a story.
func everything(s *Story) map[string]string {
	out := map[string]string{"html": s.Page(), "text": s.Text(), "mermaid": s.Mermaid(), "dot": s.Dot()}
	for name, size := range Sizes {
		out["svg graph "+name], out["svg timeline "+name] = s.Graph(size), s.Timeline(size)
	}
	return out
}

// stories are those that the tests look at.
func stories(t testing.TB) map[string]*Story {
	out := map[string]*Story{
		"report": report(t).story(), "trouble": trouble(t).story(), "parked": parked(t).story(), "endless": endless(t, 2000).story(),
		"hostile": attacked(t, strings.Repeat("W", 300)).story(), "begun": begin(t, strings.Repeat("w", 64)).story(), "none": {},
	}
	return out
}

func TestPictures_AreWellFormedAndAlone(t *testing.T) {
	loads := regexp.MustCompile(`(?i)<script|<image|<iframe|<object|<foreignObject|href=|src=|@import|javascript:|\bon[a-z]+=|url\([^#]`)
	digest := regexp.MustCompile(`[0-9a-f]{32}`)
	for name, s := range stories(t) {
		for what, text := range everything(s) {
			if digest.MatchString(text) || strings.Contains(text, "SECRET") {
				t.Errorf("%s of %s holds content, or its digest", what, name)
			}
			if !strings.HasPrefix(what, "svg") && what != "html" {
				continue
			}
			wellFormed(t, name+" "+what, text)
			if m := loads.FindString(text); m != "" {
				t.Errorf("%s of %s holds %q", what, name, m)
			}
			if strings.Count(text, "http") != strings.Count(text, `xmlns="http://www.w3.org/2000/svg"`)+strings.Count(text, "http-equiv") {
				t.Errorf("%s of %s names an address", what, name)
			}
			if len(text) > MaxBytes {
				t.Errorf("%s of %s has %d bytes", what, name, len(text))
			}
		}
	}
}

// A picture has a name and a description for those who do not see it, and scales.
func TestPictures_CanBeHeardAndScaled(t *testing.T) {
	for name, s := range stories(t) {
		for what, text := range everything(s) {
			if !strings.HasPrefix(what, "svg") {
				continue
			}
			head, _, _ := strings.Cut(text, "<style>")
			for _, want := range []string{`role="img"`, `viewBox="0 0 `, `aria-labelledby="`, "<title id=", "<desc id="} {
				if !strings.Contains(head, want) {
					t.Errorf("%s of %s lacks %s", what, name, want)
				}
			}
			if !strings.Contains(text, "@media(prefers-color-scheme:dark)") {
				t.Errorf("%s of %s has no dark colours", what, name)
			}
		}
	}
}

// wellFormed reads XML to its end; an id may be there once, and what is referred to must be.
func wellFormed(t *testing.T, what, text string) {
	t.Helper()
	ids := map[string]bool{}
	var refs []string
	text = strings.Replace(text, "<!DOCTYPE html>\n", "", 1)
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if el, ok := tok.(xml.StartElement); ok {
			for _, a := range el.Attr {
				switch a.Name.Local {
				case "id":
					if ids[a.Value] {
						t.Errorf("%s: id %s is there twice", what, a.Value)
					}
					ids[a.Value] = true
				case "aria-labelledby":
					refs = append(refs, strings.Fields(a.Value)...)
				case "fill":
					if id, ok := strings.CutPrefix(a.Value, "url(#"); ok {
						refs = append(refs, strings.TrimSuffix(id, ")"))
					}
				}
			}
		}
	}
	for _, id := range refs {
		if !ids[id] {
			t.Errorf("%s: %s is referred to, and not there", what, id)
		}
	}
}

// texts is the character data of a page.
func texts(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for d := xml.NewDecoder(strings.NewReader(strings.Replace(text, "<!DOCTYPE html>\n", "", 1))); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := tok.(xml.CharData); ok {
			b.Write(c)
			b.WriteByte('\n')
		}
	}
}
