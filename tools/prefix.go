package tools

// Separator stands between prefix and alias in a model-side name.
const Separator = "__"
