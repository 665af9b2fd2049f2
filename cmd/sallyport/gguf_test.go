//go:build llama

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// gguf is a model in the file format of llama.cpp, version 3: metadata, then tensors.
type gguf struct {
	meta    bytes.Buffer
	metas   uint64
	infos   bytes.Buffer
	tensors uint64
	data    bytes.Buffer
}

// The types of metadata that are written here, by the format's numbers.
const (
	ggufUint32  = 4
	ggufInt32   = 5
	ggufFloat32 = 6
	ggufBool    = 7
	ggufString  = 8
	ggufArray   = 9
)

// ggufAlign is to how many bytes the place of a tensor is rounded up.
const ggufAlign = 32

// put writes fixed-size values; a buffer takes all of them.
func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			put(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err) // a value without a fixed size
		}
	}
}

// set writes one key. Its value is a string, a number, a truth, or a list of one of them.
func (g *gguf) set(key string, value any) {
	g.metas++
	put(&g.meta, key)
	switch v := value.(type) {
	case string:
		put(&g.meta, uint32(ggufString), v)
	case int:
		put(&g.meta, uint32(ggufUint32), uint32(v))
	case float32:
		put(&g.meta, uint32(ggufFloat32), v)
	case bool:
		put(&g.meta, uint32(ggufBool), v)
	case []string:
		put(&g.meta, uint32(ggufArray), uint32(ggufString), uint64(len(v)))
		for _, s := range v {
			put(&g.meta, s)
		}
	case []float32:
		put(&g.meta, uint32(ggufArray), uint32(ggufFloat32), uint64(len(v)), v)
	case []int32:
		put(&g.meta, uint32(ggufArray), uint32(ggufInt32), uint64(len(v)), v)
	default:
		panic(fmt.Sprintf("no metadata: %T", value))
	}
}

// tensor writes rows of that many columns, or a single row.
func (g *gguf) tensor(name string, columns int, values []float32) {
	g.tensors++
	dims := []uint64{uint64(columns)}
	if rows := len(values) / columns; rows > 1 {
		dims = append(dims, uint64(rows))
	}
	put(&g.infos, name, uint32(len(dims)), dims, uint32(0), uint64(g.data.Len()))
	put(&g.data, values)
	pad(&g.data)
}

func pad(b *bytes.Buffer) {
	for b.Len()%ggufAlign != 0 {
		b.WriteByte(0)
	}
}

// file is the whole of it.
func (g *gguf) file() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	put(&b, uint32(3), g.tensors, g.metas)
	b.Write(g.meta.Bytes())
	b.Write(g.infos.Bytes())
	pad(&b)
	b.Write(g.data.Bytes())
	return b.Bytes()
}

// vocabulary is a byte-level vocabulary with a few pieces of text besides.
type vocabulary struct {
	texts []string
	kinds []int32
	ids   map[string]int
}

// The kinds of tokens, by the format's numbers.
const (
	kindNormal  = 1
	kindUnknown = 2
	kindControl = 3
	kindByte    = 6
)

// turnTokens is for how many turns a vocabulary has a token that begins them.
const turnTokens = 4

func turnToken(n int) string { return fmt.Sprintf("<|turn%d|>", n) }

func newVocabulary() *vocabulary {
	v := &vocabulary{ids: map[string]int{}}
	v.add("<unk>", kindUnknown)
	for _, text := range []string{"<s>", "<|im_end|>", "<|im_start|>"} {
		v.add(text, kindControl)
	}
	for n := range turnTokens {
		v.add(turnToken(n), kindControl)
	}
	for n := range 256 {
		v.add(fmt.Sprintf("<0x%02X>", n), kindByte)
	}
	return v
}

func (v *vocabulary) add(text string, kind int32) int {
	v.ids[text] = len(v.texts)
	v.texts, v.kinds = append(v.texts, text), append(v.kinds, kind)
	return v.ids[text]
}

// spaced is how a vocabulary of this kind writes blanks.
func spaced(text string) string { return strings.ReplaceAll(text, " ", "\u2581") }

// pieces adds a text as tokens of its own, none of which the vocabulary had, so that each
// of them stands for one place in that text.
func (v *vocabulary) pieces(t *testing.T, text string) []int {
	t.Helper()
	var out []int
	for from, rest := 0, text; rest != ""; {
		n := min(4, len(rest))
		for n < len(rest) && v.has(rest[:n]) {
			n++
		}
		if v.has(rest[:n]) { // the text ends as another one does: its last token is longer
			if len(out) == 0 {
				t.Fatalf("%q is there already", text)
			}
			v.drop()
			from = len(text) - len(rest) - from
			rest, out = text[from:], out[:len(out)-1]
			out = append(out, v.add(spaced(rest), kindNormal))
			break
		}
		from, out, rest = n, append(out, v.add(spaced(rest[:n]), kindNormal)), rest[n:]
	}
	return out
}

// drop takes the last token out.
func (v *vocabulary) drop() {
	last := len(v.texts) - 1
	delete(v.ids, v.texts[last])
	v.texts, v.kinds = v.texts[:last], v.kinds[:last]
}

func (v *vocabulary) has(text string) bool {
	_, ok := v.ids[spaced(text)]
	return ok
}

// shape is that of a model of the llama architecture.
type shape struct{ width, layers, heads, inner int }

// write makes the file of a model: its vocabulary, template and weights.
func (v *vocabulary) write(t *testing.T, path, template string, s shape, weights func(tensor string, rows, columns int) []float32) {
	t.Helper()
	var g gguf
	g.set("general.architecture", "llama")
	g.set("general.name", "made by a test")
	g.set("general.file_type", 0)
	g.set("llama.vocab_size", len(v.texts))
	g.set("llama.context_length", 32_768)
	g.set("llama.embedding_length", s.width)
	g.set("llama.block_count", s.layers)
	g.set("llama.feed_forward_length", s.inner)
	g.set("llama.attention.head_count", s.heads)
	g.set("llama.attention.head_count_kv", s.heads)
	g.set("llama.attention.layer_norm_rms_epsilon", float32(1e-6))
	g.set("llama.rope.dimension_count", s.width/s.heads)
	g.set("tokenizer.ggml.model", "llama")
	g.set("tokenizer.ggml.tokens", v.texts)
	g.set("tokenizer.ggml.scores", make([]float32, len(v.texts)))
	g.set("tokenizer.ggml.token_type", v.kinds)
	g.set("tokenizer.ggml.unknown_token_id", v.ids["<unk>"])
	g.set("tokenizer.ggml.bos_token_id", v.ids["<s>"])
	g.set("tokenizer.ggml.eos_token_id", v.ids["<|im_end|>"])
	g.set("tokenizer.ggml.add_bos_token", false)
	g.set("tokenizer.ggml.add_space_prefix", false)
	g.set("tokenizer.chat_template", template)
	matrix := func(name string, rows, columns int) { g.tensor(name, columns, weights(name, rows, columns)) }
	ones := func(name string) {
		row := make([]float32, s.width)
		for i := range row {
			row[i] = 1
		}
		g.tensor(name, s.width, row)
	}
	matrix("token_embd.weight", len(v.texts), s.width)
	for i := range s.layers {
		block := fmt.Sprintf("blk.%d.", i)
		ones(block + "attn_norm.weight")
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			matrix(block+name+".weight", s.width, s.width)
		}
		ones(block + "ffn_norm.weight")
		matrix(block+"ffn_gate.weight", s.inner, s.width)
		matrix(block+"ffn_up.weight", s.inner, s.width)
		matrix(block+"ffn_down.weight", s.width, s.inner)
	}
	ones("output_norm.weight")
	matrix("output.weight", len(v.texts), s.width)
	if err := os.WriteFile(path, g.file(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeGarbage makes a model of random weights. Whole pieces of calls are in its
// vocabulary, so that what it says is often almost one.
func writeGarbage(t *testing.T, path, template string, seed uint64, likely []string) {
	t.Helper()
	v := newVocabulary()
	for _, text := range likely {
		v.add(spaced(text), kindNormal)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	v.write(t, path, template, shape{width: 64, layers: 2, heads: 2, inner: 96}, func(_ string, rows, columns int) []float32 {
		values := make([]float32, rows*columns)
		for i := range values {
			values[i] = float32(r.NormFloat64()) / 4
		}
		return values
	})
}

// writeScripted makes a model whose weights are a script: turn n of a conversation is
// turns[n], word for word. Each token is one direction of the space, attention and inner
// layers add nothing, and the output turns a token into the one that follows.
func writeScripted(t *testing.T, path, template string, turns []string) {
	t.Helper()
	v := newVocabulary()
	follows := map[int]int{}
	for n, text := range turns {
		last := v.ids[turnToken(n)]
		for _, id := range v.pieces(t, text) {
			follows[last], last = id, id
		}
		follows[last] = v.ids["<|im_end|>"]
	}
	width := (len(v.texts) + 31) / 32 * 32
	v.write(t, path, template, shape{width: width, layers: 1, heads: width / 32, inner: 32}, func(name string, rows, columns int) []float32 {
		values := make([]float32, rows*columns)
		switch name {
		case "token_embd.weight":
			for id := range rows {
				values[id*columns+id] = 1
			}
		case "output.weight":
			for id, next := range follows {
				values[next*columns+id] = 2
			}
		}
		return values
	})
}
