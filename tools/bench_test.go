package tools

import "testing"

func BenchmarkNewTool(b *testing.B) {
	d, err := ParseDefinition([]byte(definitionOf("save_report", "Saves a report.", saveInput, resultOutput)))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewTool(saveContract(), d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseDefinition(b *testing.B) {
	raw := []byte(definitionOf("save_report", "Saves a report.", saveInput, resultOutput))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseDefinition(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeArguments(b *testing.B) {
	tool := saveTool(b)
	b.ReportAllocs()
	for b.Loop() {
		args, err := tool.DecodeArguments(`{"filename":"a.md","content":"a report of some length"}`)
		if err != nil {
			b.Fatal(err)
		}
		if err := tool.CheckArguments(args); err != nil {
			b.Fatal(err)
		}
	}
}
