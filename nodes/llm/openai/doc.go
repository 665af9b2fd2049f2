// Package openai is the client of models behind OpenAI-compatible endpoints: it sends what
// package chat encodes, once for each turn, and has chat read what comes back.
//
// What is the operator's to say comes from [Config] alone; the environment variables that
// the library knows are not read. The key is asked for at each attempt, travels in one
// header to one origin, and is taken out of everything that an error says; a response that
// repeats it is no turn. Redirects are not followed. Nothing is retried here: each attempt is an event of its run.
//
// The library takes long to build, so only the command links this package.
package openai
