package strictjson

import (
	"strings"
	"testing"
)

// result is about what a tool answers: 30 kB of text in a small frame.
var result = []byte(`{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{"status":"ok","message":"read","data":{"filename":"notes.md","content":"` +
	strings.Repeat(`A line of \"notes\".\n`, 1400) + `"}},"content":[{"type":"text","text":"read"}]}}`)

func BenchmarkCheck(b *testing.B) {
	for name, data := range map[string][]byte{"result": result, "names": []byte(distinctNames(30_000))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(data, FrameLimits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	for name, data := range map[string][]byte{"result": result, "names": []byte(distinctNames(30_000))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Canonical(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	data := []byte(`{"query":"evidence","max_results":3}`)
	b.ReportAllocs()
	for b.Loop() {
		var v search
		if err := Decode(data, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	v := search{Query: "evidence", MaxResults: 3}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(v); err != nil {
			b.Fatal(err)
		}
	}
}
